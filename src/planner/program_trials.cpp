// Programs are told apart by a hash of all that a simulation and the memory model read of them.
#include "planner/program_trials.h"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include "base/hash.h"
#include "planner/fold_plan.h"
#include "planner/order_costs.h"
#include "planner/simulated.h"

namespace millrace::planner {
namespace {

class ProgramHash {
 public:
  std::uint64_t of(const Program& program, const FoldedPlan& folded) {
    add(program.batch, program.overlap, program.receive_window, program.norm, program.post_validation,
        program.shard_optimizer);
    add_list(folded.device_of);
    add_list(folded.rank_of);
    add_list(folded.stage_of);
    for (const ProgramStage& stage : program.stages) add_stage(stage);
    for (const Transfer& one : program.transfers) {
      add(one.direction, one.tensor, one.from_stage, one.to_stage, one.sender, one.receiver, one.micro_batch,
          one.rows.begin, one.rows.end, one.edge);
    }
    for (const Bucket& bucket : program.buckets) {
      add_list(bucket.tensors);
      add_list(bucket.owners);
      add_list(bucket.stages);
      add(bucket.shard, bucket.factor_rows);
    }
    for (const TensorCollective& one : program.collectives) {
      add(one.kind, one.stage, one.backward, one.op, one.row_bytes, one.beside_weights);
    }
    for (const RankProgram& rank : program.ranks) {
      add(rank.instructions.size());
      for (const Instruction& one : rank.instructions) {
        add(one.kind, one.stage, one.micro_batch, one.transfer, one.bucket, one.op, one.collective, one.segment,
            one.lag);
      }
    }
    return hash64(std::as_bytes(std::span(numbers_)));
  }

 private:
  template <class... Numbers>
  void add(Numbers... numbers) {
    (numbers_.push_back(static_cast<std::int64_t>(numbers)), ...);
  }

  template <class List>
  void add_list(const List& list) {
    add(list.size());
    for (const auto& one : list) add(one);
  }

  void add_stage(const ProgramStage& stage) {
    add_list(stage.ops);
    add_list(stage.ranks);
    add_list(stage.recompute);
    add_list(stage.weight_cuts);
    // The splitter keeps the parts: equal ones are one object for as long as programs are compared.
    add(stage.ref.pipeline, stage.ref.stage, stage.slots, stage.tensor_parallel,
        reinterpret_cast<std::intptr_t>(stage.parts.get()), std::bit_cast<std::int64_t>(stage.gradient_share));
    add(stage.optimizer_shares.size());
    for (const double share : stage.optimizer_shares) add(std::bit_cast<std::int64_t>(share));
    for (const std::vector<RowInterval>& micro_batch : stage.rows) {
      for (const RowInterval& rows : micro_batch) add(rows.begin, rows.end);
    }
  }

  std::vector<std::int64_t> numbers_;
};

}  // namespace

std::shared_ptr<const TrialResult> KnownPrograms::find(std::uint64_t program) const {
  const std::lock_guard lock(guard_);
  const auto found = results_.find(program);
  return found == results_.end() ? nullptr : found->second;
}

void KnownPrograms::keep(std::uint64_t program, std::shared_ptr<const TrialResult> result) {
  const std::lock_guard lock(guard_);
  results_.try_emplace(program, std::move(result));
}

ProgramTrials::ProgramTrials(const plan::Problem& problem, const sim::Options& options, Hiding hiding,
                             KnownPrograms& known)
    : problem_(problem),
      options_(options),
      hiding_(hiding),
      known_(known),
      costs_(costs_of(*problem.cost, *problem.cluster, problem.sizes.real, options)),
      counted_(*problem.graph, problem.sizes),
      bytes_(counted_) {}

Trial ProgramTrials::of(Plan plan) {
  const bool shards = problem_.sizes.shard_optimizer;  // by the number of owners, which folding changes
  const FoldedPlan folded = shards
                                ? unfolded(plan, problem_.batch)
                                : fold_plan(plan, *problem_.graph, problem_.batch, *problem_.cluster, costs_, options_);
  LoweringOptions lowering{.hiding = hiding_, .shard_optimizer = shards, .largest_batch = problem_.batch};
  if (problem_.tensor != nullptr) lowering.parts = problem_.tensor->parts(folded.plan);
  const Program program =
      lower(*problem_.graph, folded.plan, fitted_order(folded.plan, problem_), folded.batch, lowering);
  const std::uint64_t number = ProgramHash().of(program, folded);
  if (auto result = known_.find(number)) return {std::move(plan), number, std::move(result)};
  sim::Options options = options_;
  options.iterations += 2 * program.overlap;
  sim::Simulation run = unfold(sim::simulate(*problem_.graph, program, folded_costs(costs_, folded), options), folded);
  run.timeline = {};
  const bool reduces = std::any_of(program.buckets.begin(), program.buckets.end(),
                                   [](const Bucket& bucket) { return bucket.owners.size() > 1; });
  auto result = std::make_shared<const TrialResult>(
      TrialResult{std::move(run), unfold(program_memory(program, bytes_), folded), reduces});
  known_.keep(number, result);
  return {std::move(plan), number, std::move(result)};
}

}  // namespace millrace::planner
