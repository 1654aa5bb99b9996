// The objective dapple: pipelines that are cut alike are the formula's replicas.
#include "plan/published/dapple.h"

#include <limits>
#include <string>

#include <fmt/format.h>

#include "base/limits.h"
#include "plan/published.h"
#include "plan/published/layer_profile.h"
#include "plan/published/machine.h"

namespace millrace::plan {
namespace {

// What the formula does not know.
std::string fault(const Plan& plan, const Problem& problem) {
  const Pipeline& first = plan.pipelines[0];
  const auto pipelines = static_cast<std::int64_t>(plan.pipelines.size());
  for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
    const Pipeline& pipeline = plan.pipelines[p];
    bool alike = pipeline.stages.size() == first.stages.size() && pipeline.micro_batches == first.micro_batches;
    for (std::size_t s = 0; alike && s < first.stages.size(); ++s) {
      alike = pipeline.stages[s].ops == first.stages[s].ops &&
              pipeline.stages[s].devices.size() == first.stages[s].devices.size();
      if (pipeline.stages[s].tensor_parallel != 1) return "tensor parallelism, which DAPPLE's formula does not know";
    }
    if (!alike) return fmt::format("pipelines 0 and {} differ; DAPPLE's formula knows equal ones", p);
  }
  if (problem.micro_batch_size && *problem.micro_batch_size * first.micro_batches * pipelines != problem.batch) {
    return fmt::format("{} micro-batches of {} rows in each of {} pipelines are not the batch of {}",
                       first.micro_batches, *problem.micro_batch_size, pipelines, problem.batch);
  }
  return {};
}

int server_of(const std::vector<int>& devices, const cluster::Cluster& cluster) {
  const int server = cluster.node_of(devices[0]);
  for (const int device : devices) {
    if (cluster.node_of(device) != server) return kSpansServers;
  }
  return server;
}

// Bandwidth into a stage from the one before it, in the pipeline where it is slowest.
double bandwidth_into(const Plan& plan, std::size_t stage, const cluster::Cluster& cluster) {
  double slowest = kNever;
  for (const Pipeline& pipeline : plan.pipelines) {
    const int sender = server_of(pipeline.stages[stage - 1].devices, cluster);
    const int receiver = server_of(pipeline.stages[stage].devices, cluster);
    slowest = std::min(slowest, dapple_bandwidth(sender, receiver));
  }
  return slowest;
}

double all_reduce_of(const Plan& plan, std::size_t stage, double parameter_bytes, const cluster::Cluster& cluster) {
  std::vector<int> devices;
  for (const Pipeline& pipeline : plan.pipelines) {
    const std::vector<int>& own = pipeline.stages[stage].devices;
    devices.insert(devices.end(), own.begin(), own.end());
  }
  return dapple_all_reduce(parameter_bytes, static_cast<std::int64_t>(devices.size()),
                           server_of(devices, cluster) == kSpansServers);
}

}  // namespace

double dapple_scale(const Problem& problem, double profile_batch) {
  return static_cast<double>(problem.batch) / profile_batch;
}

std::int64_t dapple_micro_batches(const Problem& problem, int pipelines) {
  if (!problem.micro_batch_size) return problem.micro_batches;
  const std::int64_t rows = *problem.micro_batch_size * pipelines;
  return problem.batch % rows == 0 ? problem.batch / rows : 0;
}

Judgement judge_dapple(const Plan& plan, const Problem& problem) {
  const LayerFigures layers = layer_figures(problem);
  Judgement judgement{.value = kNever, .why_not = fault(plan, problem)};
  if (!judgement.why_not.empty()) return judgement;
  const Pipeline& pipeline = plan.pipelines[0];
  const std::vector<StageFigures> stages = stage_figures(pipeline, layers);
  const double scale = dapple_scale(problem, layers.profile_batch);
  const auto replicas = static_cast<double>(plan.pipelines.size());
  const auto micro_batches = static_cast<double>(pipeline.micro_batches);
  double block = 0, total = 0, transfers = 0;
  std::vector<DappleReduction> reductions;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const double compute = stages[s].seconds * scale / replicas / micro_batches;
    const double shared = compute / static_cast<double>(pipeline.stages[s].devices.size());
    if (shared >= block) {
      block = shared;
      judgement.limiting_stage = static_cast<int>(s);
    }
    total += compute;
    if (s > 0) {
      transfers +=
          stages[s - 1].crossing_bytes * scale / replicas / micro_batches / bandwidth_into(plan, s, *problem.cluster);
    }
    reductions.push_back({all_reduce_of(plan, s, stages[s].parameter_bytes, *problem.cluster), static_cast<int>(s)});
  }
  judgement.value = dapple_latency(block, pipeline.micro_batches, total, transfers, reductions);
  judgement.bottleneck = block;
  return judgement;
}

double bound_dapple(const Problem& problem) {
  // A block is at least all work on all devices; transfers and reductions cost nothing.
  const LayerFigures layers = layer_figures(problem);
  double seconds = 0;
  for (const double layer : layers.seconds) seconds += layer;
  seconds *= dapple_scale(problem, layers.profile_batch);
  double bound = kNever;
  for (const int pipelines : problem.pipeline_counts()) {
    const auto m = static_cast<double>(dapple_micro_batches(problem, pipelines));
    if (m < 1) continue;
    bound = std::min(bound, seconds / problem.cluster->size() / m * (m - 1) + seconds / (pipelines * m));
  }
  return bound < kNever ? bound : 0;
}

}  // namespace millrace::plan
