// Writes the rank programs: each compute action between its receives and its sends, then reductions and updates.
#include "program/lowering.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/errors.h"
#include "plan/rows.h"
#include "program/buckets.h"
#include "program/liveness.h"
#include "program/tags.h"
#include "program/transfers.h"

namespace millrace {
namespace {

void refuse_unsupported(const Stage& stage, StageRef ref) {
  if (stage.tensor_parallel != 1) {
    throw InvalidInput(fmt::format("stage {} of pipeline {} has tensor_parallel {}; programs allow 1", ref.stage,
                                   ref.pipeline, stage.tensor_parallel));
  }
  if (!stage.recompute.empty()) {
    throw InvalidInput(fmt::format("stage {} of pipeline {} recomputes {} operators; programs allow none", ref.stage,
                                   ref.pipeline, stage.recompute.size()));
  }
}

void require_one_stage_a_rank(const Program& program) {
  std::vector<const ProgramStage*> held(program.ranks.size(), nullptr);
  for (const ProgramStage& stage : program.stages) {
    for (const int rank : stage.ranks) {
      const ProgramStage*& other = held[static_cast<std::size_t>(rank)];
      if (other != nullptr) {
        throw InvalidInput(
            fmt::format("device {} is in stage {} of pipeline {} and in stage {} of pipeline {}; a device "
                        "holds one stage",
                        rank, other->ref.stage, other->ref.pipeline, stage.ref.stage, stage.ref.pipeline));
      }
      other = &stage;
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
      refuse_unsupported(source, stage.ref);
      stage.ops = source.ops;
      stage.ranks = source.devices;
      for (std::int64_t k = 0; k < pipeline.micro_batches; ++k) {
        std::vector<RowInterval>& rows = stage.rows.emplace_back();
        for (int r = 0; r < static_cast<int>(source.devices.size()); ++r) {
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

// Writes the instructions of one rank.
class RankWriter {
 public:
  RankWriter(const Program& program, const Crossings& crossings, int rank)
      : program_(program), crossings_(crossings), rank_(rank) {}

  void compute(const ComputeAction& action) {
    switch (action.kind) {
      case ComputeKind::forward:
        receive_activations(action);
        append(InstructionKind::forward, action);
        send_activations(action);
        break;
      case ComputeKind::backward:
        receive_gradients(action);
        append(InstructionKind::backward, action);
        send_gradients(action);
        break;
      case ComputeKind::backward_input:
        receive_gradients(action);
        append(InstructionKind::backward_input, action);
        send_gradients(action);
        break;
      case ComputeKind::backward_weight:
        append(InstructionKind::backward_weight, action);
        break;
    }
  }

  // A rank's buckets are complete after its last backward; they are reduced in the global order of buckets.
  void reduce_and_update() {
    for (const InstructionKind kind :
         {InstructionKind::reduce_gradients, InstructionKind::reduce_norm, InstructionKind::update_weights}) {
      if (kind == InstructionKind::reduce_norm) {
        add({.kind = kind});
        continue;
      }
      for (std::size_t b = 0; b < program_.buckets.size(); ++b) {
        const std::vector<int>& owners = program_.buckets[b].owners;
        if (kind == InstructionKind::reduce_gradients && owners.size() == 1) continue;
        if (!std::binary_search(owners.begin(), owners.end(), rank_)) continue;
        add({.kind = kind, .bucket = static_cast<std::int32_t>(b)});
      }
    }
  }

  RankProgram take() { return std::move(result_); }

 private:
  void add(const Instruction& instruction) { result_.instructions.push_back(instruction); }

  void append(InstructionKind kind, const ComputeAction& action) {
    add({.kind = kind, .stage = action.stage, .micro_batch = action.micro_batch});
  }

  // The messages of `starts` for the action's micro-batch in which this rank is the `side`.
  void messages(InstructionKind kind, const ComputeAction& action, const std::vector<std::int32_t>& starts,
                std::int32_t Transfer::*side) {
    const auto k = static_cast<std::size_t>(action.micro_batch);
    for (std::int32_t t = starts[k]; t < starts[k + 1]; ++t) {
      if (program_.transfers[static_cast<std::size_t>(t)].*side != rank_) continue;
      add({.kind = kind, .stage = action.stage, .micro_batch = action.micro_batch, .transfer = t});
    }
  }

  const Crossing& crossing(std::int32_t c) const { return crossings_.all[static_cast<std::size_t>(c)]; }

  void receive_activations(const ComputeAction& action) {
    for (const std::int32_t c : crossings_.into[static_cast<std::size_t>(action.stage)]) {
      messages(InstructionKind::receive_activation, action, crossing(c).activations, &Transfer::receiver);
    }
  }
  void send_activations(const ComputeAction& action) {
    for (const std::int32_t c : crossings_.out_of[static_cast<std::size_t>(action.stage)]) {
      messages(InstructionKind::send_activation, action, crossing(c).activations, &Transfer::sender);
    }
  }
  void receive_gradients(const ComputeAction& action) {
    for (const std::int32_t c : crossings_.gradients_back_to[static_cast<std::size_t>(action.stage)]) {
      if (!crossing(c).has_gradient) continue;
      messages(InstructionKind::receive_gradient, action, crossing(c).gradients, &Transfer::receiver);
    }
  }
  void send_gradients(const ComputeAction& action) {
    for (const std::int32_t c : crossings_.into[static_cast<std::size_t>(action.stage)]) {
      if (!crossing(c).has_gradient) continue;
      messages(InstructionKind::send_gradient, action, crossing(c).gradients, &Transfer::sender);
    }
  }

  const Program& program_;
  const Crossings& crossings_;
  int rank_;
  RankProgram result_;
};

Program lower_order(const Graph& graph, const Plan& plan, const ComputeOrder& order, std::int64_t batch, bool training,
                    const LoweringOptions& options) {
  Program program;
  program.batch = batch;
  program.training = training;
  program.receive_window = options.receive_window;
  program.stages = make_stages(plan, batch);
  program.ranks.resize(order.ranks().size());
  require_one_stage_a_rank(program);
  const Crossings crossings = add_transfers(graph, program);
  assign_tags(program, options.tag_limit);
  program.buckets = make_buckets(graph, program.stages, plan.bucket_size);
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    RankWriter writer(program, crossings, static_cast<int>(rank));
    for (const ComputeAction& action : order.ranks()[rank]) {
      check_action(program, action);
      writer.compute(action);
    }
    if (training) writer.reduce_and_update();
    program.ranks[rank] = writer.take();
  }
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    ProgramStage& stage = program.stages[s];
    stage.slots = 1;
    for (const int rank : stage.ranks) {
      const RankProgram& list = program.ranks[static_cast<std::size_t>(rank)];
      stage.slots = std::max(stage.slots, peak_live_micro_batches(list, static_cast<std::int32_t>(s), training));
    }
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
    for (int s = 0; s < static_cast<int>(pipeline.stages.size()); ++s) {
      ComputeOrder::Lane lane = order.lane({p, s});
      for (std::int64_t k = 0; k < pipeline.micro_batches; ++k) lane.forward(k);
    }
  }
  return lower_order(graph, plan, order, batch, false, options);
}

}  // namespace millrace
