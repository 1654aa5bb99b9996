// Numbers devices through pipelines, stages and replicas.
#include "plan/assignment.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "plan/fit.h"

namespace millrace::plan {

Plan assign(const Problem& problem, int pipelines, std::span<const StageCut> stages, Shares shares) {
  const std::vector<double> speeds = shares == Shares::by_speed
                                         ? device_speeds(problem)
                                         : std::vector<double>(static_cast<std::size_t>(problem.cluster->size()), 1.0);
  Plan plan;
  plan.model = problem.graph->name();
  plan.graph_digest = problem.graph->digest();
  plan.schedule = problem.schedule;
  plan.bucket_size = problem.bucket_size;
  std::vector<OpList> ops;  // all pipelines share them
  for (const StageCut& cut : stages) {
    std::vector<OpId> ascending = cut.ops;
    std::sort(ascending.begin(), ascending.end());
    ops.emplace_back(std::move(ascending));
  }
  int device = 0;
  for (int p = 0; p < pipelines; ++p) {
    Pipeline pipeline;
    pipeline.share = 1.0 / pipelines;
    pipeline.micro_batches = problem.micro_batches;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      Stage stage;
      stage.ops = ops[s];
      if (recomputes_all(problem, s, stages.size())) stage.recompute = ops[s];
      for (int r = 0; r < stages[s].replicas; ++r) {
        stage.shares.push_back(speeds[static_cast<std::size_t>(device)]);
        stage.devices.push_back(device++);
      }
      const double sum = std::accumulate(stage.shares.begin(), stage.shares.end(), 0.0);
      for (double& share : stage.shares) share /= sum;
      pipeline.stages.push_back(std::move(stage));
    }
    plan.pipelines.push_back(std::move(pipeline));
  }
  return plan;
}

std::vector<int> even_replicas(int devices, int stages) {
  std::vector<int> replicas(static_cast<std::size_t>(stages), devices / stages);
  for (int s = 0; s < devices % stages; ++s) ++replicas[static_cast<std::size_t>(s)];
  return replicas;
}

}  // namespace millrace::plan
