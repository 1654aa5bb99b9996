// Every pipeline shares the lists of operators of the first.
#include "partitioners/common/dealt_plan.h"

#include <algorithm>
#include <numeric>

namespace millrace::partitioners {

Plan dealt_plan(const plan::Problem& problem, const std::string& digest, const Order& order, const DeviceDeal& deal,
                const PipelineCut& cut, std::span<const double> speeds) {
  Plan plan;
  plan.model = problem.graph->name();
  plan.graph_digest = digest;
  plan.schedule = problem.schedule;
  plan.bucket_size = problem.bucket_size;
  std::vector<OpList> ops;
  std::size_t begin = 0;
  for (const CutStage& stage : cut.stages) {
    std::vector<OpId> of(order.begin() + static_cast<std::ptrdiff_t>(begin),
                         order.begin() + static_cast<std::ptrdiff_t>(stage.end));
    std::sort(of.begin(), of.end());
    ops.emplace_back(std::move(of));
    begin = stage.end;
  }
  for (int p = 0; p < deal.pipelines(); ++p) {
    Pipeline pipeline;
    pipeline.share = 1.0 / deal.pipelines();
    pipeline.micro_batches = problem.micro_batches;
    Counts behind = deal.counts();
    for (std::size_t s = 0; s < cut.stages.size(); ++s) {
      const CutStage& from = cut.stages[s];
      for (std::size_t q = 0; q < behind.size(); ++q) behind[q] -= from.taken[q];
      Stage stage;
      stage.ops = ops[s];
      if (from.recompute) stage.recompute = ops[s];
      stage.devices = deal.devices(p, behind, from.taken);
      for (const int device : stage.devices) stage.shares.push_back(speeds[static_cast<std::size_t>(device)]);
      const double sum = std::accumulate(stage.shares.begin(), stage.shares.end(), 0.0);
      for (double& share : stage.shares) share /= sum;
      pipeline.stages.push_back(std::move(stage));
    }
    plan.pipelines.push_back(std::move(pipeline));
  }
  return plan;
}

}  // namespace millrace::partitioners
