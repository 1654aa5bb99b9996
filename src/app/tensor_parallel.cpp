// Plans are made for groups of devices; the groups come apart when operators are split.
#include "app/tensor_parallel.h"

#include <algorithm>

#include <fmt/format.h>

#include "app/planning.h"
#include "base/errors.h"
#include "cost/analytic.h"
#include "shard/stage_parts.h"

namespace millrace::app {

cluster::Cluster grouped(const cluster::Cluster& cluster, int tensor, const std::string& key) {
  if (cluster.size() % tensor != 0) {
    throw InvalidInput(
        fmt::format("{} {}: found {} devices, allowed: a multiple of {}", key, tensor, cluster.size(), tensor));
  }
  std::vector<cluster::Device> devices;
  std::vector<int> node_of;
  for (int first = 0; first < cluster.size(); first += tensor) {
    cluster::Device device = cluster.device(first);
    device.bandwidth = BytesPerSecond(device.bandwidth.value() * tensor);
    if (device.memory) device.memory = Bytes(device.memory->value() * tensor);
    for (auto& [precision, flops] : device.flops) flops = FlopsPerSecond(flops.value() * tensor);
    for (int t = 1; t < tensor; ++t) device.speed = std::min(device.speed, cluster.device(first + t).speed);
    devices.push_back(std::move(device));
    node_of.push_back(cluster.node_of(first));
  }
  cluster::Cluster result(cluster.name(), cluster.kind(), std::move(devices), std::move(node_of), cluster.nodes(),
                          cluster.network(), cluster.emulated());
  result.set_host(cluster.host());
  return result;
}

void spread(Plan& plan, int tensor) {
  for (Pipeline& pipeline : plan.pipelines) {
    for (Stage& stage : pipeline.stages) {
      std::vector<int> devices;
      for (const int group : stage.devices) {
        for (int t = 0; t < tensor; ++t) devices.push_back(group * tensor + t);
      }
      stage.devices = std::move(devices);
      stage.tensor_parallel = tensor;
    }
  }
}

std::vector<std::shared_ptr<const StageParts>> parts_of(const Session& session, const Plan& plan) {
  const Pipeline& first = plan.pipelines.front();
  const bool any = std::any_of(plan.pipelines.begin(), plan.pipelines.end(), [](const Pipeline& pipeline) {
    return std::any_of(pipeline.stages.begin(), pipeline.stages.end(),
                       [](const Stage& stage) { return stage.tensor_parallel > 1; });
  });
  if (!any) return {};
  if (session.experiment.train.any_grid) {
    throw InvalidInput(
        fmt::format("{}: any takes plans of tensor_parallel 1: each part of a split product sums its own terms, so the "
                    "order of additions, and with it the last bits, depends on the number of devices; take grid, which "
                    "gives the same bits under the same plan, or plan.tensor_parallel 1 with more plan.pipelines",
                    cited(session.experiment, "train.reproducible")));
  }
  const std::string precision = precision_name(session.experiment);
  const cost::AnalyticCost cost(session.graph, session.cluster, precision);
  const plan::TrainingBytes bytes = training_bytes(session.experiment);
  shard::PartRequest request{.annotations = session.experiment.plan.annotations};
  const double rows = static_cast<double>(session.experiment.data.batch) * first.share;
  request.micro_batches = first.micro_batches;
  request.rows = std::max<std::int64_t>(1, static_cast<std::int64_t>(rows) / first.micro_batches);
  request.real_bytes = bytes.real;
  request.optimizer_bytes = bytes.optimizer_per_parameter;
  return shard::stage_parts(session.graph, plan, session.cluster, cost, request);
}

void check_annotations(const Experiment& experiment) {
  const PlanSection& plan = experiment.plan;
  if (!plan.annotations.empty() && plan.tensor_parallel == 1 && !plan.file) {
    throw InvalidInput(
        fmt::format("{}: plans split operators inside stages of several devices only: give "
                    "plan.tensor_parallel (`millrace shard` takes any mesh)",
                    cited(experiment, "plan.annotations")));
  }
  if (plan.mesh.empty()) return;
  const bool fits =
      plan.mesh.size() == 1 && plan.mesh.front().name == "tensor" && plan.mesh.front().size == plan.tensor_parallel;
  if (fits) return;
  throw InvalidInput(
      fmt::format("{}: stages are split over one axis, tensor, of plan.tensor_parallel {} devices; other "
                  "meshes are read by `millrace shard` alone (pipelines and replicas come from the plan)",
                  cited(experiment, "plan.mesh"), plan.tensor_parallel));
}

}  // namespace millrace::app
