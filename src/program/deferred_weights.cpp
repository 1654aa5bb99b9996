// Cuts stages where their buckets end, and moves weight gradients behind everything else.
#include "program/deferred_weights.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/index.h"
#include "graph/footprint.h"
#include "program/buckets.h"

namespace millrace {
namespace {

std::int64_t bytes_of(const Graph& graph, const Bucket& bucket) {
  std::int64_t bytes = 0;
  for (const TensorId tensor : bucket.tensors) bytes += tensor_bytes(graph.tensor(tensor), 4).value();
  return bytes;
}

void require_deferrable(const ProgramStage& stage) {
  const bool recomputes = !stage.recompute.empty();
  if (!recomputes && stage.tensor_parallel == 1) return;
  throw InvalidInput(fmt::format(
      "stage {} of pipeline {} {}, which weight gradients that are deferred layer by layer do not allow: leave out {} "
      "or deferred_weights",
      stage.ref.stage, stage.ref.pipeline, recomputes ? "recomputes activations" : "is tensor-parallel",
      recomputes ? "recompute" : "tensor_parallel"));
}

bool is_weights(const ComputeAction& action) {
  return action.kind == ComputeKind::backward || action.kind == ComputeKind::backward_weight;
}

}  // namespace

std::vector<std::int64_t> divide_deferred_weights(const Graph& graph, Program& program, std::int64_t micro_batches) {
  std::vector<std::int64_t> bytes(program.stages.size()), deferred(program.stages.size());
  if (micro_batches == 0) return deferred;
  for (const Bucket& bucket : program.buckets) {
    if (bucket.owners.size() == 1) continue;
    for (const std::int32_t s : bucket.stages) {
      ProgramStage& stage = program.stages[at(s)];
      bytes[at(s)] += bytes_of(graph, bucket);
      stage.weight_cuts.push_back(completing_op(graph, bucket, stage));
    }
  }
  const std::int64_t most = *std::max_element(bytes.begin(), bytes.end());
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    ProgramStage& stage = program.stages[s];
    if (bytes[s] == 0) continue;
    require_deferrable(stage);
    const double part = static_cast<double>(bytes[s]) / static_cast<double>(most);
    const auto wanted = static_cast<std::int64_t>(std::ceil(part * static_cast<double>(micro_batches)));
    deferred[s] = std::min(wanted, static_cast<std::int64_t>(stage.rows.size()));
    std::vector<OpId>& cuts = stage.weight_cuts;
    std::sort(cuts.begin(), cuts.end(), std::greater<>());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    // What stands before the last bucket's first operator has nothing to reduce: it belongs to that segment.
    cuts.pop_back();
  }
  return deferred;
}

std::vector<ComputeAction> defer_weights(const std::vector<ComputeAction>& actions, const Program& program,
                                         const std::vector<std::int64_t>& deferred) {
  std::map<std::int32_t, std::vector<std::size_t>> late;  // by stage: positions
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (is_weights(actions[i]) && !deferred.empty()) late[actions[i].stage].push_back(i);
  }
  std::vector<bool> moves(actions.size(), false);
  std::vector<std::int32_t> stages;
  for (auto& [stage, positions] : late) {
    const auto count = std::min<std::int64_t>(deferred[at(stage)], static_cast<std::int64_t>(positions.size()));
    positions.erase(positions.begin(), positions.end() - count);
    for (const std::size_t i : positions) moves[i] = true;
    if (count > 0) stages.push_back(stage);
  }
  std::vector<ComputeAction> result;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    ComputeAction action = actions[i];
    if (!stages.empty() && (action.kind == ComputeKind::update || action.lag != 0)) {
      throw InvalidInput("weight gradients are deferred to the end of an iteration, and the schedule has none");
    }
    if (moves[i] && action.kind == ComputeKind::backward_weight) continue;
    if (moves[i]) action.kind = ComputeKind::backward_input;
    result.push_back(action);
  }
  std::stable_sort(stages.begin(), stages.end(), [&](std::int32_t a, std::int32_t b) {
    return program.stages[at(a)].ref.stage > program.stages[at(b)].ref.stage;
  });
  for (const std::int32_t stage : stages) {
    const auto segments = static_cast<std::int16_t>(program.stages[at(stage)].weight_cuts.size() + 1);
    for (std::int16_t segment = 0; segment < segments; ++segment) {
      for (const std::size_t i : late[stage]) {
        result.push_back({ComputeKind::backward_weight, stage, actions[i].micro_batch, 0,
                          segments == 1 ? std::int16_t{-1} : segment});
      }
    }
  }
  return result;
}

}  // namespace millrace
