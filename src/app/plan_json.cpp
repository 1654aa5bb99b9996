// Plans as JSON, with the key names that scripts rely on (INTERFACES 3).
#include <cmath>
#include <set>

#include <nlohmann/json.hpp>

#include "app/planning.h"
#include "app/print.h"

namespace millrace::app {
namespace {

using nlohmann::json;

json number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

template <class Number>
json optional(const std::optional<Number>& value) {
  return value ? number(static_cast<double>(*value)) : json(nullptr);
}

json link_json(const cluster::Link& link) {
  return {{"bandwidth_bytes_per_s", number(link.bandwidth.value())}, {"latency_s", link.latency.value()}};
}

// Infinite bandwidths are null, as memory without a limit is.
json cluster_json(const cluster::Cluster& cluster) {
  json devices = json::array(), nodes = json::array();
  for (int d = 0; d < cluster.size(); ++d) {
    const cluster::Device& device = cluster.device(d);
    json flops = json::object();
    for (const auto& [precision, rate] : device.flops) flops[precision] = rate.value();
    devices.push_back({{"name", device.name},
                       {"node", cluster.node_of(d)},
                       {"flops_per_s", std::move(flops)},
                       {"memory_bytes", device.memory ? json(device.memory->value()) : json(nullptr)},
                       {"bandwidth_bytes_per_s", number(device.bandwidth.value())},
                       {"speed", device.speed}});
  }
  for (const cluster::Node& node : cluster.nodes()) {
    nodes.push_back({{"name", node.name}, {"link", link_json(node.link)}});
  }
  json network = link_json(cluster.network().link);
  network["oversubscription"] = cluster.network().oversubscription;
  return {{"name", cluster.name()},
          {"devices", std::move(devices)},
          {"nodes", std::move(nodes)},
          {"network", std::move(network)}};
}

json stage_json(const plan::StageReport& stage, const Graph& graph) {
  json ops = json::array();
  for (const OpId op : stage.ops) ops.push_back(graph.op(op).name);
  return {{"pipeline", stage.pipeline},
          {"index", stage.index},
          {"ops", std::move(ops)},
          {"op_count", stage.ops.size()},
          {"devices", stage.devices},
          {"shares", stage.shares},
          {"forward_s", number(stage.forward_s)},
          {"backward_s", number(stage.backward_s)},
          {"transfer_s", number(stage.transfer_s)},
          {"tensor_forward_s", number(stage.tensor_forward_s)},
          {"tensor_backward_s", number(stage.tensor_backward_s)},
          {"reduction_s", number(stage.reduction_s)},
          {"live_micro_batches", stage.live_micro_batches},
          {"send_bytes", stage.send_bytes},
          {"parameter_bytes", stage.parameter_bytes},
          {"activation_bytes", stage.activation_bytes},
          {"memory_bytes", stage.memory_bytes}};
}

}  // namespace

json figures_json(const plan::PlanReport& r) {
  return {{"partitioner", r.partitioner},
          {"order", r.order},
          {"schedule", r.schedule},
          {"objective", r.objective},
          {"objective_value", optional(r.objective_value)},
          {"objective_unit", r.objective_unit},
          {"bound", optional(r.bound)},
          {"bound_source", r.bound_source},
          {"optimality_gap", optional(r.optimality_gap)},
          {"certificate", r.certificate},
          {"micro_batches", r.micro_batches},
          {"pipelines", r.pipelines},
          {"feasible", r.feasible},
          {"why_not", r.why_not},
          {"planning_time_s", number(r.planning_time_s)},
          {"stopped_by", r.stopped_by},
          {"iteration_time_s", number(r.iteration_time_s)},
          {"makespan_s", number(r.makespan_s)},
          {"throughput_samples_per_s", number(r.throughput_samples_per_s)},
          {"bottleneck_s", number(r.bottleneck_s)},
          {"peak_memory_bytes", r.peak_memory_bytes},
          {"mean_memory_bytes", r.mean_memory_bytes},
          {"memory_efficiency", number(r.memory_efficiency)},
          {"bubble_fraction", number(r.bubble_fraction)},
          {"bytes_injected", r.bytes_injected},
          {"node_crossings", r.node_crossings},
          {"hidden_communication",
           {{"p2p", optional(r.hidden_communication.p2p)},
            {"gradients", optional(r.hidden_communication.gradients)},
            {"tensor", optional(r.hidden_communication.tensor)}}},
          {"balance", number(r.balance)},
          {"limiting_op", r.limiting_op}};
}

json plan_json(const plan::PlanReport& report, const Graph& graph) {
  json stages = json::array();
  for (const plan::StageReport& stage : report.stages) stages.push_back(stage_json(stage, graph));
  json plan = figures_json(report);
  plan["stages"] = std::move(stages);
  return plan;
}

json plans_document(const Session& session, const Planned& planned) {
  json plans = json::array();
  for (const plan::Candidate& candidate : planned.ranking.plans) {
    plans.push_back(plan_json(candidate.report, session.graph));
  }
  return {{"problem", problem_json(session.graph, session.cluster.size(), session.experiment.data.batch)},
          {"cluster", cluster_json(session.cluster)},
          {"plans", std::move(plans)},
          {"why_not", planned.why_not}};
}

json problem_json(const Graph& graph, int devices, std::int64_t batch) {
  std::int64_t edges = 0;
  for (std::size_t t = 0; t < graph.tensors().size(); ++t) {
    if (graph.tensors()[t].role != Role::activation) continue;
    edges += static_cast<std::int64_t>(graph.consumers(static_cast<TensorId>(t)).size());
  }
  return {{"ops", graph.size()}, {"tensors", graph.tensors().size()},
          {"edges", edges},      {"parameters", graph.parameter_count()},
          {"devices", devices},  {"batch", batch}};
}

}  // namespace millrace::app
