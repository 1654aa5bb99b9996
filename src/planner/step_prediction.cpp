// Simulates layouts, and tries what is open.
#include "planner/step_prediction.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/text.h"
#include "planner/step_costs.h"
#include "planner/step_job.h"
#include "sim/noise.h"
#include "sim/run.h"

namespace millrace::planner {
namespace {

using cost::Recompute;

constexpr std::int64_t kMostOpenMicroBatch = 16;
constexpr int kMostOpenChunks = 16;
constexpr double kWeightAndGradientBytes = 2 + 4;
constexpr double kOptimizerBytes = 12;  // fp32 weights, two moments
constexpr double kLogitBytes = 2 + 4 + 4;

// Devices of one kind differ in speed. Every group is as slow as its slowest member; the slowest of all stands in the
// middle of the pipeline, so that a stage with less work or a longer one elsewhere can make up for it.
void set_speeds(const Layout& layout, double spread, sim::Job& job) {
  const std::int64_t group = std::int64_t{layout.tensor} * layout.data;
  for (sim::Rank& rank : job.ranks) rank.slowness = 1 + spread * sim::expected_normal_maximum(group);
  const auto middle = static_cast<std::size_t>(layout.pipeline / 2);
  job.ranks[middle].slowness = 1 + spread * sim::expected_normal_maximum(layout.devices());
}

}  // namespace

StepMemory step_memory(const Layout& layout, const std::vector<std::int64_t>& live_layers) {
  const cost::Slice slice{layout.micro_batch, layout.tensor, layout.sequence_parallel};
  const bool fused = layout.software.fused_attention;
  const double kept = cost::layer_activation_bytes(layout.model, slice, layout.recompute, fused);
  const double whole = cost::layer_activation_bytes(layout.model, slice, Recompute::none, fused);
  const double embedding = layout.model.embedding_parameters() / layout.tensor;
  const std::vector<int> layers = layers_of_stages(layout);
  const double state = kWeightAndGradientBytes + kOptimizerBytes / (layout.sharded_optimizer ? layout.data : 1);
  StepMemory most;
  for (int d = 0; d < layout.pipeline; ++d) {
    double parameters = 0;
    const double activations = kept * static_cast<double>(live_layers[static_cast<std::size_t>(d)]);
    for (int i = d; i < layout.stages(); i += layout.pipeline) {
      const auto stage = static_cast<std::size_t>(i);
      parameters += layers[stage] * layout.model.layer_parameters() / layout.tensor;
    }
    double extra = layout.recompute == Recompute::full ? whole : 0;
    if (d == 0 || d + 1 == layout.pipeline) parameters += embedding;
    if (d + 1 == layout.pipeline) {
      extra += kLogitBytes * static_cast<double>(layout.micro_batch * layout.model.sequence * layout.model.vocabulary) /
               layout.tensor;
    }
    most.total = std::max(most.total, state * parameters + activations + extra);
    most.activations = std::max(most.activations, activations);
  }
  return most;
}

StepMemory step_memory(const Layout& layout, const cluster::Cluster& cluster) {
  check(layout);
  return step_memory(layout, peak_live_layers(layout, step_order(layout, step_costs(layout, cluster))));
}

StepPrediction predict_step(const Layout& layout, const cluster::Cluster& cluster) {
  check(layout);
  const StepCosts costs = step_costs(layout, cluster);
  const ComputeOrder order = step_order(layout, costs);
  const StepMemory memory = step_memory(layout, peak_live_layers(layout, order));
  sim::Job job = step_job(layout, costs, order);
  set_speeds(layout, cluster.host().spread, job);
  // Where no device waits for all others at the end, the next iteration fills what this one leaves: the steady state
  // counts (METHODS 1).
  sim::Options options;
  if (splits_backward(order)) options.iterations = 3;
  return {layout, sim::run(job, options).iteration_time, memory.total, memory.activations};
}

StepPrediction predict_fastest(const Layout& layout, const OpenChoices& open, const cluster::Cluster& cluster) {
  if (!open.micro_batch && !open.chunks && !open.recompute) return predict_step(layout, cluster);
  const std::int64_t per_replica = layout.global_batch / layout.data;
  const std::int64_t layers_per_device = layout.model.layers / layout.pipeline;
  const bool interleaves = open.chunks && layout.pipeline > 1 && layout.model.layers % layout.pipeline == 0;
  const double limit = cluster.device(0).memory ? static_cast<double>(cluster.device(0).memory->value()) : 1e300;
  std::optional<StepPrediction> best;
  double least = 1e300;
  Layout tried = layout;
  for (std::int64_t b = 1; b <= (open.micro_batch ? kMostOpenMicroBatch : 1); b *= 2) {
    if (open.micro_batch) tried.micro_batch = b;
    if (per_replica % tried.micro_batch != 0) continue;
    for (int v = 1; v <= (interleaves ? kMostOpenChunks : 1); ++v) {
      if (open.chunks) {
        if (layers_per_device % v != 0 && interleaves) continue;
        if (v > 1 && tried.micro_batches() % layout.pipeline != 0) continue;
        tried.chunks = v;
        tried.schedule = v > 1 ? "interleaved" : "1f1b";
      }
      for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
        if (open.recompute) tried.recompute = recompute;
        const StepPrediction prediction = predict_step(tried, cluster);
        least = std::min(least, prediction.memory_bytes);
        const bool fits = prediction.memory_bytes <= limit;
        if (fits && (!best || prediction.time < best->time)) best = prediction;
        if (!open.recompute) break;
      }
    }
  }
  if (!best) {
    throw InvalidInput(fmt::format("no micro-batch, virtual stages and recomputation fit into {}: {} are needed",
                                   format(Bytes(static_cast<std::int64_t>(limit))),
                                   format(Bytes(static_cast<std::int64_t>(least)))));
  }
  return *best;
}

}  // namespace millrace::planner
