// Adds up figures operator by operator.
#include "plan/published/layer_profile.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/errors.h"
#include "plan/published/machine.h"

namespace millrace::plan {
namespace {

void add_readers(const Graph& graph, OpId op, std::vector<OpId>& readers) {
  for (const TensorId output : graph.op(op).outputs) {
    const auto consumers = graph.consumers(output);
    readers.insert(readers.end(), consumers.begin(), consumers.end());
  }
  std::sort(readers.begin(), readers.end());
  readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
}

}  // namespace

LayerFigures layer_figures(const Problem& problem) {
  const Graph& graph = *problem.graph;
  const auto size = static_cast<std::size_t>(graph.size());
  const double speed = equal_devices(problem).speed;
  const auto* profile = graph.carried() != nullptr ? std::get_if<LayerProfile>(&graph.carried()->extra) : nullptr;
  LayerFigures layers;
  layers.seconds.assign(size, 0);
  layers.output_bytes.assign(size, 0);
  layers.parameter_bytes.assign(size, 0);
  layers.readers.resize(size);
  layers.is_input = profile != nullptr ? profile->is_input : std::vector<bool>(size, false);
  layers.profile_batch = profile != nullptr ? profile->profile_batch : 1;
  for (std::size_t i = 0; i < size; ++i) {
    const OpFigures* figures = graph.figures(static_cast<OpId>(i));
    if (figures == nullptr) {
      throw InvalidInput(
          fmt::format("objective {}: operator '{}' has no figures of its own; allowed: graphs of cost "
                      "operators, as PipeDream's profiles give them",
                      name(problem.objective), graph.op(static_cast<OpId>(i)).name));
    }
    add_readers(graph, static_cast<OpId>(i), layers.readers[i]);
    if (layers.is_input[i]) continue;
    layers.seconds[i] = (figures->forward_s + figures->backward_input_s + figures->backward_weight_s) / speed;
    layers.output_bytes[i] = static_cast<double>(figures->output_bytes);
    layers.parameter_bytes[i] = static_cast<double>(figures->parameter_bytes);
  }
  return layers;
}

std::vector<StageFigures> stage_figures(const Pipeline& pipeline, const LayerFigures& layers) {
  std::vector<std::size_t> stage_of(layers.seconds.size(), 0);
  std::vector<StageFigures> stages(pipeline.stages.size());
  for (std::size_t s = 0; s < stages.size(); ++s) {
    for (const OpId op : pipeline.stages[s].ops) {
      const auto i = static_cast<std::size_t>(op);
      stage_of[i] = s;
      stages[s].seconds += layers.seconds[i];
      stages[s].parameter_bytes += layers.parameter_bytes[i];
      stages[s].activation_bytes += layers.output_bytes[i];
    }
  }
  for (std::size_t i = 0; i < stage_of.size(); ++i) {
    std::size_t last = stage_of[i];
    for (const OpId reader : layers.readers[i]) last = std::max(last, stage_of[static_cast<std::size_t>(reader)]);
    for (std::size_t s = stage_of[i]; s < last; ++s) stages[s].crossing_bytes += layers.output_bytes[i];
  }
  return stages;
}

}  // namespace millrace::plan
