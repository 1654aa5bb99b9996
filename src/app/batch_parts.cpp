// Propagates over an axis that may cut the batch, and looks where it did.
#include "app/batch_parts.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "app/planning.h"
#include "app/tensor_parallel.h"
#include "base/errors.h"
#include "cost/analytic.h"
#include "shard/sharding.h"

namespace millrace::app {
namespace {

// Operators compute their rows where the first output is cut along them, and stays so.
bool cuts_batch(const Graph& graph, const shard::Sharded& sharded, OpId op) {
  const Operator& node = graph.op(op);
  const auto operands = sharded.ops->operands(op);
  const std::size_t output = operands.size() - node.outputs.size();
  const shard::Use& use = sharded.cut.decision.uses[static_cast<std::size_t>(op)].front();
  const shard::Property property = sharded.ops->property(op, output, use);
  const shard::Property kept = sharded.cut.decision.placements[static_cast<std::size_t>(node.outputs.front())].front();
  const bool rows = property.is_split() && property.dim == 0 && kept.is_split() && kept.dim == 0;
  return graph.tensor(node.outputs.front()).shape.batched && rows;
}

bool may_cut_batch(const std::vector<shard::Annotation>& annotations) {
  return std::any_of(annotations.begin(), annotations.end(), [](const shard::Annotation& one) {
    return one.kind == shard::Property::Kind::split && one.dim == 0;
  });
}

}  // namespace

std::vector<double> batch_weights(const Session& session) {
  const PlanSection& plan = session.experiment.plan;
  if (plan.tensor_parallel == 1 || !may_cut_batch(plan.annotations)) return {};
  const cost::AnalyticCost cost(session.graph, session.cluster, precision_name(session.experiment));
  const shard::Sharded sharded = shard::shard(session.graph, session.cluster, cost,
                                              {.axes = {{"tensor", plan.tensor_parallel}},
                                               .annotations = cited_annotations(session.experiment),
                                               .rows = std::max<std::int64_t>(1, session.experiment.data.batch)});
  const shard::Property input =
      sharded.cut.decision.placements[static_cast<std::size_t>(session.graph.inputs().front())].front();
  if (!input.is_split() || input.dim != 0) return {};
  for (OpId op = 0; op < session.graph.size(); ++op) {
    if (cuts_batch(session.graph, sharded, op)) continue;
    throw InvalidInput(
        fmt::format("{}: the batch of {} is cut and that of operator {} is not; a stage's devices cut the batch of all "
                    "operators, as replicas, or of none: annotate one or the other (`millrace shard` shows where)",
                    cited(session.experiment, "plan.annotations"),
                    session.graph.tensor(session.graph.inputs().front()).name, session.graph.op(op).name));
  }
  std::vector<double> weights = sharded.mesh->ratio(input.ratio);
  if (weights.empty()) weights.assign(static_cast<std::size_t>(plan.tensor_parallel), 1.0);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= sum;
  return weights;
}

void spread_batch(Plan& plan, const std::vector<double>& weights) {
  for (Pipeline& pipeline : plan.pipelines) {
    for (Stage& stage : pipeline.stages) {
      std::vector<int> devices;
      std::vector<double> shares;
      for (std::size_t group = 0; group < stage.devices.size(); ++group) {
        for (std::size_t part = 0; part < weights.size(); ++part) {
          devices.push_back(stage.devices[group] * static_cast<int>(weights.size()) + static_cast<int>(part));
          shares.push_back(stage.shares[group] * weights[part]);
        }
      }
      stage.devices = std::move(devices);
      stage.shares = std::move(shares);
    }
  }
}

}  // namespace millrace::app
