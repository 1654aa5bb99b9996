// Asks the device without slots, and everything else for its own bytes.
#include "runtime/forecast.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "program/buckets.h"
#include "runtime/exchange.h"
#include "runtime/local_edges.h"
#include "runtime/tree_nodes.h"

namespace millrace::runtime {
namespace {

// What programs of one plan have in common on all ranks.
class Forecaster {
 public:
  Forecaster(const Graph& graph, const Programs& programs, const TrainOptions& options, kernels::Device* device)
      : graph_(graph),
        programs_(programs),
        options_(options),
        own_device_(device == nullptr ? make_device(options) : nullptr),
        device_(device == nullptr ? *own_device_ : *device) {
    for (const auto* list : {&programs.train, &programs.evaluation}) {
      for (const Program& program : *list) channels_.push_back({&program, message_channels(program)});
    }
  }

  Forecast of(int rank) {
    Forecast found;
    const Program& first = programs_.train.front();
    std::vector<std::unique_ptr<StageRunner>> runners;
    std::vector<StageRunner*> by_stage(first.stages.size(), nullptr);
    for (std::size_t s = 0; s < first.stages.size(); ++s) {
      const auto& ranks = first.stages[s].ranks;
      if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) continue;
      const auto stage = static_cast<std::int32_t>(s);
      runners.push_back(std::make_unique<StageRunner>(graph_, first, stage, options_.precision, options_.seed,
                                                      kernels::Storage::none,
                                                      PartGroup::make(first.stages[s], rank, nullptr, nullptr)));
      by_stage[s] = runners.back().get();
      found.stages[stage] = of(*runners.back(), rank);
    }
    for (const auto& [program, channels] : channels_) {
      for (const MessageChannel& channel : channels) {
        if (channel.sender != rank && channel.receiver != rank) continue;
        const std::int32_t stage = channel.sender == rank ? channel.from_stage : channel.to_stage;
        found.stages.at(stage).buffers_bytes += buffer_bytes(channel, rank, graph_, options_.precision);
      }
      found.rank.buffers_bytes +=
          LocalEdges(graph_, *program, rank, by_stage, options_.precision, kernels::Storage::none).buffer_bytes();
    }
    for (const auto& [stage, part] : found.stages) {
      found.rank.weights_bytes += part.weights_bytes;
      found.rank.gradients_bytes += part.gradients_bytes;
      found.rank.optimizer_bytes += part.optimizer_bytes;
      found.rank.activations_bytes += part.activations_bytes;
      found.rank.workspace_bytes += part.workspace_bytes;
      found.rank.buffers_bytes += part.buffers_bytes;
    }
    return found;
  }

 private:
  RankReport of(StageRunner& runner, int rank) {
    RankReport part;
    for (const auto* list : {&programs_.train, &programs_.evaluation}) {
      for (const Program& program : *list) runner.require(program, rank);
    }
    const kernels::StageParameters& parameters = runner.parameters();
    part.weights_bytes = (1 + runner.copies()) * parameters.value_bytes();
    std::size_t nodes = 0;
    for (const Program& program : programs_.train) {
      if (options_.any_grid) nodes = std::max(nodes, tree_nodes(program, runner.stage(), rank));
    }
    part.gradients_bytes = static_cast<std::int64_t>(1 + nodes) * parameters.gradient_bytes();
    const Program& first = programs_.train.front();
    const Optimizer optimizer(runner.part_graph(), runner.parameters(), options_.optimizer,
                              kept_states(graph_, first, runner.stage(), rank));
    part.optimizer_bytes = (first.post_validation ? 2 : 1) * optimizer.state_bytes();
    const StageRunner::Bytes bytes = runner.bytes_needed(device_, known_);
    part.activations_bytes = bytes.activations;
    part.workspace_bytes = bytes.workspace;
    return part;
  }

  const Graph& graph_;
  const Programs& programs_;
  const TrainOptions& options_;
  std::unique_ptr<kernels::Device> own_device_;
  kernels::Device& device_;
  std::vector<std::pair<const Program*, std::vector<MessageChannel>>> channels_;
  StageRunner::KnownBytes known_;
};

}  // namespace

Forecast forecast(const Graph& graph, const Programs& programs, const TrainOptions& options, int rank,
                  kernels::Device* device) {
  return Forecaster(graph, programs, options, device).of(rank);
}

std::vector<Forecast> forecast_all(const Graph& graph, const Programs& programs, const TrainOptions& options,
                                   kernels::Device* device) {
  Forecaster forecaster(graph, programs, options, device);
  std::vector<Forecast> ranks;
  for (std::size_t rank = 0; rank < programs.train.front().ranks.size(); ++rank) {
    ranks.push_back(forecaster.of(static_cast<int>(rank)));
  }
  return ranks;
}

}  // namespace millrace::runtime
