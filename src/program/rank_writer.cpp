// One action after the other; a bucket is reduced as soon as it and all before it are complete.
#include "program/rank_writer.h"

#include <algorithm>

#include "base/index.h"
#include "program/buckets.h"
#include "program/rank_links.h"
#include "program/weight_segments.h"

namespace millrace {
namespace {

bool contributes(ComputeKind kind) { return kind == ComputeKind::backward || kind == ComputeKind::backward_weight; }

bool holds(const std::vector<std::int32_t>& sorted, std::int32_t value) {
  return std::binary_search(sorted.begin(), sorted.end(), value);
}

}  // namespace

RankWriter::RankWriter(const Graph& graph, const Program& program, const Crossings& crossings, int rank,
                       const LoweringOptions& options)
    : graph_(graph),
      program_(program),
      crossings_(crossings),
      rank_(rank),
      hiding_(options.hiding),
      fuse_updates_(options.fuse_updates) {
  for (std::size_t b = 0; b < program.buckets.size(); ++b) {
    const std::vector<int>& owners = program.buckets[b].owners;
    if (std::binary_search(owners.begin(), owners.end(), rank)) owned_.push_back(static_cast<std::int32_t>(b));
  }
}

RankProgram RankWriter::write(const std::vector<ComputeAction>& actions) {
  note_last_contributions(actions);
  bool validated = !program_.post_validation;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (!validated && actions[i].kind != ComputeKind::forward) {
      result_.instructions.push_back({.kind = InstructionKind::reduce_norm, .lag = 1});
      validated = true;
    }
    write_action(actions[i], i);
  }
  if (program_.training && !updates_in_order_) {
    reduce_complete(actions.size(), -1);
    reduce_norm_and_update();
  }
  return std::move(result_);
}

void RankWriter::note_last_contributions(const std::vector<ComputeAction>& actions) {
  complete_after_.assign(owned_.size(), 0);
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (actions[i].kind == ComputeKind::update) updates_in_order_ = true;
    if (actions[i].kind <= ComputeKind::backward_weight) {
      last_computation_ = i;
      last_is_sent_ = sends_gradients(actions[i]);
    }
    if (!contributes(actions[i].kind)) continue;
    for (std::size_t b = 0; b < owned_.size(); ++b) {
      if (completes(actions[i], owned_[b])) complete_after_[b] = i;
    }
  }
}

// Of a divided computation the segment with the bucket's first operator comes last.
bool RankWriter::completes(const ComputeAction& action, std::int32_t bucket) const {
  const Bucket& its = bucket_of(bucket);
  if (!holds(its.stages, action.stage)) return false;
  const ProgramStage& stage = program_.stages[static_cast<std::size_t>(action.stage)];
  const std::span<const OpId> ops = weight_ops(stage, action.segment);
  if (ops.size() == stage.ops.size()) return true;
  return std::binary_search(ops.begin(), ops.end(), completing_op(graph_, its, stage));
}

bool RankWriter::sends_gradients(const ComputeAction& action) const {
  if (action.kind != ComputeKind::backward) return false;
  const auto& into = crossings_.into[static_cast<std::size_t>(action.stage)];
  return std::any_of(into.begin(), into.end(), [&](std::int32_t c) {
    const Crossing& crossing = crossings_.all[static_cast<std::size_t>(c)];
    if (!crossing.has_gradient) return false;
    const auto k = static_cast<std::size_t>(action.micro_batch);
    for (std::int32_t t = crossing.gradients[k]; t < crossing.gradients[k + 1]; ++t) {
      if (program_.transfers[static_cast<std::size_t>(t)].sender == rank_) return true;
    }
    return false;
  });
}

// An update inside of a backward keeps nobody waiting where that is the last computation of the rank and nothing of
// it is sent. The update of a bucket of several owners would wait for its reduction, which is to pass beside the rest
// of the backward.
bool RankWriter::fuses(std::int32_t bucket, std::size_t index) const {
  if (!fuse_updates_ || program_.norm || index != last_computation_ || last_is_sent_) return false;
  const Bucket& of = bucket_of(bucket);
  const bool parts = std::any_of(of.stages.begin(), of.stages.end(), [&](std::int32_t stage) {
    return program_.stages[static_cast<std::size_t>(stage)].tensor_parallel > 1;
  });
  return !parts && of.owners.size() == 1;
}

void RankWriter::write_action(const ComputeAction& action, std::size_t index) {
  const auto s = static_cast<std::size_t>(action.stage);
  const bool recomputes = !program_.stages[s].recompute.empty();
  switch (action.kind) {
    case ComputeKind::forward:
      messages(InstructionKind::receive_activation, action, crossings_.into[s]);
      computation(InstructionKind::forward, action);
      messages(InstructionKind::send_activation, action, crossings_.out_of[s]);
      return;
    case ComputeKind::backward:
    case ComputeKind::backward_input:
      // Recomputation needs nothing from other ranks: it goes on while the gradient is on its way.
      if (recomputes) computation(InstructionKind::recompute, action);
      messages(InstructionKind::receive_gradient, action, crossings_.gradients_back_to[s]);
      computation(action.kind == ComputeKind::backward ? InstructionKind::backward : InstructionKind::backward_input,
                  action);
      if (hiding_ != Hiding::drain && action.kind == ComputeKind::backward) reduce_complete(index, action.stage);
      messages(InstructionKind::send_gradient, action, crossings_.into[s]);
      if (action.kind == ComputeKind::backward) reduce_complete(index, -1);
      return;
    case ComputeKind::backward_weight:
      computation(InstructionKind::backward_weight, action);
      reduce_complete(index, hiding_ != Hiding::drain ? action.stage : -1);
      return;
    case ComputeKind::stash_weights:
      return computation(InstructionKind::stash_weights, action);
    case ComputeKind::load_weights:
      return computation(InstructionKind::load_weights, action);
    case ComputeKind::drop_stash:
      return computation(InstructionKind::drop_stash, action);
    case ComputeKind::update:
      return update(action);
  }
}

// Divided by the collectives of a tensor-parallel stage into segments.
void RankWriter::computation(InstructionKind kind, const ComputeAction& action) {
  Instruction instruction{.kind = kind, .stage = action.stage, .micro_batch = action.micro_batch};
  instruction.lag = static_cast<std::int16_t>(action.lag);
  instruction.segment = action.segment;
  std::int16_t segment = 0;
  for (const std::int32_t c : collectives_of(program_, instruction)) {
    instruction.segment = segment++;
    result_.instructions.push_back(instruction);
    Instruction between = instruction;
    between.kind = program_.collectives[static_cast<std::size_t>(c)].kind;
    between.collective = c;
    between.segment = -1;
    result_.instructions.push_back(between);
  }
  if (segment > 0) instruction.segment = segment;
  result_.instructions.push_back(instruction);
}

// What a schedule that does not flush gathered in a stage.
void RankWriter::update(const ComputeAction& action) {
  const auto lag = static_cast<std::int16_t>(action.lag);
  for (const InstructionKind kind : {InstructionKind::reduce_gradients, InstructionKind::update_weights}) {
    for (const std::int32_t b : owned_) {
      const Bucket& bucket = program_.buckets[static_cast<std::size_t>(b)];
      if (!holds(bucket.stages, action.stage)) continue;
      if (kind == InstructionKind::reduce_gradients && bucket.owners.size() == 1) continue;
      result_.instructions.push_back({.kind = kind, .bucket = b, .lag = lag});
    }
  }
}

// Reductions whose buckets are complete after action `index`; with a stage, those that its computation just completed
// may start inside of it. One that was complete before and waited for its turn starts behind it, and so do those whose
// turn is later.
void RankWriter::reduce_complete(std::size_t index, std::int32_t stage) {
  if (updates_in_order_) return;
  bool behind = stage < 0;
  for (; next_reduction_ < owned_.size() && complete_after_[next_reduction_] <= index; ++next_reduction_) {
    const std::int32_t b = owned_[next_reduction_];
    const bool inside = !behind && complete_after_[next_reduction_] == index;
    const OpId op =
        inside ? completing_op(graph_, bucket_of(b), program_.stages[static_cast<std::size_t>(stage)]) : OpId{-1};
    if (bucket_of(b).owners.size() > 1) {
      result_.instructions.push_back(
          {.kind = InstructionKind::reduce_gradients, .bucket = b, .op = static_cast<std::int32_t>(op)});
      behind = !inside;
    }
    if (inside && fuses(b, index)) update_bucket(b, op);
  }
}

void RankWriter::update_bucket(std::int32_t b, OpId op) {
  result_.instructions.push_back(
      {.kind = InstructionKind::update_weights, .bucket = b, .op = static_cast<std::int32_t>(op)});
  if (op >= 0) updated_.push_back(b);
}

void RankWriter::reduce_norm_and_update() {
  if (program_.norm && !program_.post_validation) {
    result_.instructions.push_back({.kind = InstructionKind::reduce_norm});
  }
  for (const std::int32_t b : owned_) {
    if (std::find(updated_.begin(), updated_.end(), b) == updated_.end()) update_bucket(b, -1);
    // Behind all reductions on every owner, wherever it updates: they meet in one order.
    if (is_sharded(program_, bucket_of(b))) {
      result_.instructions.push_back({.kind = InstructionKind::gather_weights, .bucket = b});
    }
  }
}

// The messages of the action's micro-batch in which this rank is the sender (receiver).
void RankWriter::messages(InstructionKind kind, const ComputeAction& action,
                          const std::vector<std::int32_t>& crossings) {
  const bool activation = kind == InstructionKind::receive_activation || kind == InstructionKind::send_activation;
  const bool receives = kind == InstructionKind::receive_activation || kind == InstructionKind::receive_gradient;
  const auto k = static_cast<std::size_t>(action.micro_batch);
  for (const std::int32_t c : crossings) {
    const Crossing& crossing = crossings_.all[static_cast<std::size_t>(c)];
    if (!(activation ? crossing.has_activation : crossing.has_gradient)) continue;
    const std::vector<std::int32_t>& starts = activation ? crossing.activations : crossing.gradients;
    for (std::int32_t t = starts[k]; t < starts[k + 1]; ++t) {
      const Transfer& transfer = program_.transfers[static_cast<std::size_t>(t)];
      if ((receives ? transfer.receiver : transfer.sender) != rank_) continue;
      result_.instructions.push_back({.kind = kind,
                                      .stage = action.stage,
                                      .micro_batch = action.micro_batch,
                                      .transfer = t,
                                      .lag = static_cast<std::int16_t>(action.lag)});
    }
  }
}

}  // namespace millrace
