// Makes the tables that all ranks share, then the list of each rank.
#include "program/lowering.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/errors.h"
#include "plan/rows.h"
#include "program/buckets.h"
#include "program/deferred_weights.h"
#include "program/factored_gradients.h"
#include "program/liveness.h"
#include "program/part_collectives.h"
#include "program/rank_writer.h"
#include "program/recycled_gradients.h"
#include "program/storage_order.h"
#include "program/tags.h"
#include "program/transfers.h"

namespace millrace {
namespace {

// Chunks of one pipeline that share a rank pass rows to each other in place, so they must have the same ones.
void require_equal_sharing(const Program& program, const Plan& plan) {
  std::map<std::pair<int, int>, std::size_t> held;  // by rank and pipeline
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    const ProgramStage& stage = program.stages[s];
    for (const int rank : stage.ranks) {
      const auto [place, is_new] = held.try_emplace({rank, stage.ref.pipeline}, s);
      const ProgramStage& other = program.stages[place->second];
      const auto& stages = plan.pipelines[static_cast<std::size_t>(stage.ref.pipeline)].stages;
      if (is_new || (other.ranks == stage.ranks && other.tensor_parallel == stage.tensor_parallel &&
                     stages[static_cast<std::size_t>(other.ref.stage)].shares ==
                         stages[static_cast<std::size_t>(stage.ref.stage)].shares)) {
        continue;
      }
      throw InvalidInput(
          fmt::format("device {} is in stages {} and {} of pipeline {}; stages of a pipeline that share a device share "
                      "all of their "
                      "devices, their shares and tensor_parallel",
                      rank, other.ref.stage, stage.ref.stage, stage.ref.pipeline));
    }
  }
}

std::vector<ProgramStage> make_stages(const Plan& plan, std::int64_t batch) {
  std::vector<ProgramStage> stages;
  for (int p = 0; p < static_cast<int>(plan.pipelines.size()); ++p) {
    const Pipeline& pipeline = plan.pipelines[static_cast<std::size_t>(p)];
    for (int s = 0; s < static_cast<int>(pipeline.stages.size()); ++s) {
      const Stage& source = pipeline.stages[static_cast<std::size_t>(s)];
      ProgramStage stage;
      stage.ref = {p, s};
      stage.ops = source.ops;
      stage.ranks = source.devices;
      stage.tensor_parallel = source.tensor_parallel;
      stage.recompute = source.recompute;
      for (std::int64_t k = 0; k < pipeline.micro_batches; ++k) {
        std::vector<RowInterval>& rows = stage.rows.emplace_back();
        for (int r = 0; r < static_cast<int>(source.shares.size()); ++r) {
          rows.push_back(replica_rows(plan, batch, stage.ref, k, r));
        }
      }
      stages.push_back(std::move(stage));
    }
  }
  return stages;
}

void check_action(const Program& program, const ComputeAction& action) {
  const auto& rows = program.stages.at(static_cast<std::size_t>(action.stage)).rows;
  if (action.micro_batch < 0 || static_cast<std::size_t>(action.micro_batch) >= rows.size()) {
    throw InvalidInput(fmt::format("the schedule computes micro-batch {} of stage {}, which has {}", action.micro_batch,
                                   action.stage, rows.size()));
  }
}

bool updates_by_itself(const ComputeOrder& order) {
  const auto& ranks = order.ranks();
  return std::any_of(ranks.begin(), ranks.end(), [](const std::vector<ComputeAction>& rank) {
    return std::any_of(rank.begin(), rank.end(), [](const ComputeAction& a) { return a.kind == ComputeKind::update; });
  });
}

void require_shardable(const Program& program, const ComputeOrder& order) {
  if (!program.shard_optimizer || !program.training) return;
  if (updates_by_itself(order)) {
    throw InvalidInput(
        "train.shard_optimizer: the schedule updates weights while other micro-batches are under way, which cannot "
        "wait "
        "for the parts of other replicas; leave it out, or take a synchronous schedule");
  }
  for (const ProgramStage& stage : program.stages) {
    if (stage.tensor_parallel == 1) continue;
    throw InvalidInput(fmt::format(
        "train.shard_optimizer: stage {} of pipeline {} has tensor_parallel {}, whose parameters are in parts already; "
        "leave one of them out",
        stage.ref.stage, stage.ref.pipeline, stage.tensor_parallel));
  }
}

// A stage that updates its weights in the midst of an iteration cannot wait for another stage's contribution; the same
// stage of other pipelines updates at the same place.
void require_own_parameters(const Graph& graph, const Program& program, const ComputeOrder& order) {
  if (!updates_by_itself(order)) return;
  for (const Bucket& bucket : program.buckets) {
    const auto place = [&](std::int32_t s) { return program.stages[static_cast<std::size_t>(s)].ref.stage; };
    const bool one_place = std::all_of(bucket.stages.begin(), bucket.stages.end(),
                                       [&](std::int32_t s) { return place(s) == place(bucket.stages.front()); });
    if (one_place) continue;
    throw InvalidInput(
        fmt::format("parameter {} is in {} stages; schedules that do not flush update each stage by "
                    "itself and take no tied parameters across stages",
                    graph.tensor(bucket.tensors.front()).name, bucket.stages.size()));
  }
}

void fill_in_slots(Program& program) {
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    ProgramStage& stage = program.stages[s];
    const std::vector<int> peaks = peak_live_micro_batches(program, static_cast<std::int32_t>(s));
    stage.slots = 1;
    for (const int rank : stage.ranks) stage.slots = std::max(stage.slots, peaks[static_cast<std::size_t>(rank)]);
  }
}

void fill_in_shares(const Graph& graph, Program& program, std::int32_t s) {
  ProgramStage& stage = program.stages[static_cast<std::size_t>(s)];
  std::int64_t all = 0;
  for (const StoredBucket& stored : stored_buckets(program, s)) {
    all += bucket_elements(graph, program.buckets[static_cast<std::size_t>(stored.bucket)]);
  }
  for (const int rank : stage.ranks) {
    std::int64_t kept = 0;
    const std::vector<ElementRange> ranges = kept_states(graph, program, s, rank).value();
    for (const ElementRange& range : ranges) kept += range.size();
    stage.optimizer_shares.push_back(all == 0 ? 1.0 : static_cast<double>(kept) / static_cast<double>(all));
  }
}

Program lower_order(const Graph& graph, const Plan& plan, const ComputeOrder& order, std::int64_t batch, bool training,
                    const LoweringOptions& options) {
  Program program;
  program.batch = batch;
  program.training = training;
  program.receive_window = options.receive_window;
  program.stages = make_stages(plan, batch);
  for (std::size_t s = 0; s < options.parts.size(); ++s) program.stages[s].parts = options.parts[s];
  program.ranks.resize(order.ranks().size());
  require_equal_sharing(program, plan);
  const Crossings crossings = add_transfers(graph, program);
  assign_tags(program, options.tag_limit);
  program.buckets = make_buckets(graph, program.stages, plan.bucket_size);
  program.collectives = options.parts.empty() ? options.collectives : part_collectives(program.stages);
  require_own_parameters(graph, program, order);
  program.norm = training && (options.hiding != Hiding::update || options.post_validation);
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    for (const ComputeAction& action : order.ranks()[rank]) {
      check_action(program, action);
      program.overlap = std::max(program.overlap, static_cast<int>(action.lag));
      if (action.kind == ComputeKind::update) program.norm = false;
    }
  }
  program.shard_optimizer = options.shard_optimizer;
  require_shardable(program, order);
  // Parts would have to be gathered before the norm is known, and once more where it takes them back.
  program.post_validation = options.post_validation && program.norm && !program.shard_optimizer;
  if (program.post_validation) program.overlap = 1;
  const bool whole_batch = training && !program.norm && !updates_by_itself(order);
  if (options.factor_gradients && whole_batch && !program.shard_optimizer) {
    factor_gradients(graph, program, std::max(batch, options.largest_batch));
  }
  std::vector<std::int64_t> deferred;
  if (training) deferred = divide_deferred_weights(graph, program, order.deferred_weights());
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    RankWriter writer(graph, program, crossings, static_cast<int>(rank), options);
    program.ranks[rank] = writer.write(defer_weights(order.ranks()[rank], program, deferred));
  }
  fill_in_slots(program);
  for (std::size_t s = 0; s < program.stages.size() && training; ++s) {
    program.stages[s].gradient_share = gradient_share(graph, program, static_cast<std::int32_t>(s));
    if (program.shard_optimizer) fill_in_shares(graph, program, static_cast<std::int32_t>(s));
  }
  return program;
}

}  // namespace

Program lower(const Graph& graph, const Plan& plan, const ComputeOrder& order, std::int64_t batch,
              const LoweringOptions& options) {
  return lower_order(graph, plan, order, batch, true, options);
}

Program lower_evaluation(const Graph& graph, const Plan& plan, std::int64_t batch, const LoweringOptions& options) {
  ComputeOrder order(plan);
  for (int p = 0; p < static_cast<int>(plan.pipelines.size()); ++p) {
    const Pipeline& pipeline = plan.pipelines[static_cast<std::size_t>(p)];
    for (std::int64_t k = 0; k < pipeline.micro_batches; ++k) {
      for (int s = 0; s < static_cast<int>(pipeline.stages.size()); ++s) order.lane({p, s}).forward(k);
    }
  }
  return lower_order(graph, plan, order, batch, false, options);
}

}  // namespace millrace
