// Plans are made for groups of devices; the groups come apart when operators are split.
#include "app/tensor_parallel.h"

#include <algorithm>

#include <fmt/format.h>

#include "app/planning.h"
#include "base/errors.h"
#include "plan/tensor_stages.h"

namespace millrace::app {

struct SessionSplit {
  const Graph* graph;  // of the session that it was made for: sessions are values, and may have moved since
  const cluster::Cluster* cluster;
  std::unique_ptr<const cost::CostModel> cost;
  planner::TensorSplit split;
};

namespace {

shard::PartRequest part_request(const Session& session) {
  const Experiment& experiment = session.experiment;
  const plan::TrainingBytes bytes = training_bytes(experiment);
  return {.annotations = cited_annotations(experiment),
          .batch = experiment.data.batch,
          .precision = precision_name(experiment),
          .real_bytes = bytes.real,
          .optimizer_bytes = bytes.optimizer_per_parameter,
          .memory_limit = experiment.plan.memory_limit};
}

// A plan whose micro-batches are as long as those of the search may be: the costs of groups are asked for before there
// is one.
Plan typical(const Session& session) {
  const PlanSection& section = session.experiment.plan;
  constexpr std::int64_t kTypical = 4;
  Plan plan;
  plan.schedule = section.schedules.front().name;
  Pipeline& pipeline = plan.pipelines.emplace_back();
  pipeline.share = 1.0 / section.pipelines.value_or(1);
  pipeline.micro_batches = kTypical;
  if (section.micro_batch_size) {
    const double rows = static_cast<double>(session.experiment.data.batch) * pipeline.share;
    pipeline.micro_batches = std::max<std::int64_t>(1, static_cast<std::int64_t>(rows) / *section.micro_batch_size);
  } else if (!section.micro_batches.empty()) {
    pipeline.micro_batches = section.micro_batches.front();
  }
  return plan;
}

}  // namespace

const planner::TensorSplit& split_of(const Session& session) {
  std::shared_ptr<const SessionSplit>& known = session.split;
  if (!known || known->graph != &session.graph || known->cluster != &session.cluster) {
    auto cost = make_costs(session);
    const cost::CostModel& costs = *cost;
    known = std::shared_ptr<const SessionSplit>(
        new SessionSplit{&session.graph, &session.cluster, std::move(cost),
                         planner::TensorSplit(session.graph, session.cluster, costs, part_request(session))});
  }
  return known->split;
}

std::vector<std::shared_ptr<const StageParts>> parts_of(const Session& session, const Plan& plan) {
  if (!plan::splits_operators(plan)) return {};
  if (session.experiment.train.any_grid) {
    throw InvalidInput(
        fmt::format("{}: any takes plans of tensor_parallel 1: each part of a split product sums its own terms, so the "
                    "order of additions, and with it the last bits, depends on the number of devices; take grid, which "
                    "gives the same bits under the same plan, or plan.tensor_parallel 1 with more plan.pipelines",
                    cited(session.experiment, "train.reproducible")));
  }
  return split_of(session).parts(plan);
}

DeviceGroups groups_of(const Session& session, bool share_operators) {
  const int tensor = session.experiment.plan.tensor_parallel;
  if (session.cluster.size() % tensor != 0) {
    throw InvalidInput(fmt::format("{} {}: found {} devices, allowed: a multiple of {}",
                                   cited(session.experiment, "plan.tensor_parallel"), tensor, session.cluster.size(),
                                   tensor));
  }
  DeviceGroups groups;
  groups.cluster = std::make_unique<const cluster::Cluster>(
      planner::device_groups(session.cluster, tensor, session.experiment.plan.memory_limit));
  if (!share_operators) {
    groups.cost = make_costs(session, *groups.cluster);
    return groups;
  }
  groups.device_cost = make_costs(session);
  shard::PartRequest request = part_request(session);
  request.within_memory = false;  // the whole graph on one group is no plan
  groups.split = std::make_unique<const planner::TensorSplit>(session.graph, session.cluster, *groups.device_cost,
                                                              std::move(request));
  groups.cost = planner::group_costs(session.graph, session.cluster, *groups.device_cost, *groups.split, tensor,
                                     typical(session));
  return groups;
}

std::vector<shard::Annotation> cited_annotations(const Experiment& experiment) {
  std::vector<shard::Annotation> annotations = experiment.plan.annotations;
  for (std::size_t i = 0; i < annotations.size(); ++i) {
    const std::string key = fmt::format("plan.annotations[{}]", i);
    const std::string place = cited(experiment, key, "plan.annotations");
    if (annotations[i].where == key) annotations[i].where = place;
  }
  return annotations;
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
