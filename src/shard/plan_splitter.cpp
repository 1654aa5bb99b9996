// Groups stages by the parameters that they share, decides for each group once, and cuts its stages.
#include "shard/plan_splitter.h"

#include <algorithm>
#include <numeric>

#include "base/index.h"
#include "cost/analytic.h"
#include "graph/stage_graph.h"
#include "plan/closed_form.h"
#include "plan/tensor_stages.h"
#include "shard/index.h"
#include "shard/stage_parts.h"

namespace millrace::shard {
namespace {

// Where operators share a parameter and would take different parts of it, all take it as it is kept: on ranks,
// parameters do not change hands.
void agree_on_parameters(const Graph& graph, const OpTable& ops, const TensorTable& tensors, const Mesh& mesh,
                         Decision& decision) {
  const auto taken = [&](OpId op, TensorId parameter, const Use& use) {
    const auto operands = ops.operands(op);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].tensor == parameter) return ops.property(op, i, use);
    }
    return Property{};
  };
  const auto can = [&](OpId op, const Use& use) {
    const auto operands = ops.operands(op);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Placement placement{ops.property(op, i, use)};
      if (!fits(tensors.view(operands[i].tensor), placement, mesh)) return false;
    }
    return true;
  };
  for (const TensorId parameter : graph.parameters()) {
    const auto users = graph.consumers(parameter);
    const Property kept = decision.placements[index(parameter)].front();
    const bool agree = std::all_of(users.begin(), users.end(), [&](OpId op) {
      return taken(op, parameter, decision.uses[index(op)].front()) ==
             taken(users.front(), parameter, decision.uses[index(users.front())].front());
    });
    if (agree) continue;
    for (const OpId op : users) {
      if (taken(op, parameter, decision.uses[index(op)].front()) == kept) continue;
      for (Use use : ops.uses(op)) {
        use.ratio = kept.is_split() ? kept.ratio : std::int16_t{0};
        if (taken(op, parameter, use) != kept || !can(op, use)) continue;
        decision.uses[index(op)].front() = use;
        break;
      }
    }
  }
}

std::int64_t live_micro_batches(const Plan& plan, const Pipeline& pipeline, std::size_t stage) {
  const auto stages = static_cast<std::int64_t>(pipeline.stages.size());
  return plan::schedule_traits(plan.schedule)
      .needed(pipeline.micro_batches, stages - static_cast<std::int64_t>(stage), stages);
}

}  // namespace

PlanSplitter::PlanSplitter(const Graph& graph, const cluster::Cluster& cluster, PartRequest request)
    : graph_(graph),
      cluster_(cluster),
      request_(std::move(request)),
      cost_(std::make_unique<cost::AnalyticCost>(graph, cluster, request_.precision)) {}

std::vector<std::shared_ptr<const StageParts>> PlanSplitter::parts(const Plan& plan) const {
  if (!plan::splits_operators(plan)) return {};
  const Pipeline& first = plan.pipelines.front();
  const double rows = static_cast<double>(request_.batch) * first.share / static_cast<double>(first.micro_batches);
  std::vector<StageOf> stages;
  for (const Pipeline& pipeline : plan.pipelines) {
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
      stages.push_back({&pipeline.stages[s], live_micro_batches(plan, pipeline, s)});
    }
  }
  std::vector<std::shared_ptr<const StageParts>> all(stages.size());
  for (const Component& component : components(stages)) {
    const Sharded& cut =
        decide(component, stages, std::max<std::int64_t>(1, static_cast<std::int64_t>(rows)), first.micro_batches);
    for (const std::size_t s : component.stages) {
      const std::vector<OpId>& ops = stages[s].stage->ops.vector();
      const auto [known, is_new] = cut_.try_emplace({&cut, ops});
      if (is_new) {
        known->second = std::make_shared<const StageParts>(
            cut_stage(graph_, ops, *cut.ops, *cut.tensors, *cut.mesh, cut.cut.decision));
      }
      all[s] = known->second;
    }
  }
  return all;
}

// Annotations say the same everywhere; the automatic choice is alike where parameters are the same.
std::vector<PlanSplitter::Component> PlanSplitter::components(const std::vector<StageOf>& stages) const {
  std::vector<std::size_t> leader(stages.size());
  std::iota(leader.begin(), leader.end(), 0);
  const auto find = [&](std::size_t s) {
    while (leader[s] != s) s = leader[s] = leader[leader[s]];
    return s;
  };
  std::map<std::pair<int, TensorId>, std::size_t> holder;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const int devices = stages[s].stage->tensor_parallel;
    if (devices == 1) continue;
    const auto join = [&](TensorId id) {
      const auto [known, is_new] = holder.try_emplace({devices, id}, s);
      const std::size_t a = find(known->second), b = find(s);
      leader[std::max(a, b)] = std::min(a, b);
    };
    if (!request_.annotations.empty()) join(-1);
    for (const OpId op : stages[s].stage->ops) {
      for (const TensorId id : graph_.op(op).parameters) join(id);
      for (const TensorId id : graph_.op(op).buffers) join(id);
    }
  }
  std::map<std::size_t, Component> found;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const int devices = stages[s].stage->tensor_parallel;
    if (devices == 1) continue;
    Component& component = found[find(s)];
    component.devices = devices;
    component.stages.push_back(s);
  }
  std::vector<Component> all;
  for (auto& [first, component] : found) all.push_back(std::move(component));
  return all;
}

double PlanSplitter::seconds(int device, std::int64_t rows) const {
  const auto [known, is_new] = seconds_.try_emplace({cluster_.first_alike(device), rows}, 0.0);
  if (is_new) {
    for (OpId op = 0; op < graph_.size(); ++op) known->second += cost_->op_time(op, rows, device).total().value();
  }
  return known->second;
}

PlanSplitter::Places PlanSplitter::places(const Component& component, const std::vector<StageOf>& stages,
                                          std::int64_t rows) const {
  const auto size = at(component.devices);
  Places places;
  places.slowest.assign(size, -1);
  places.memory.resize(size);
  for (const std::size_t s : component.stages) {
    const std::vector<int>& devices = stages[s].stage->devices;
    for (std::size_t d = 0; d < devices.size(); ++d) {
      int& slowest = places.slowest[d % size];
      if (slowest < 0 || seconds(devices[d], rows) > seconds(slowest, rows)) slowest = cluster_.first_alike(devices[d]);
      std::optional<Bytes>& memory = places.memory[d % size];
      for (const std::optional<Bytes>& limit : {cluster_.device(devices[d]).memory, request_.memory_limit}) {
        if (limit) memory = std::min(memory.value_or(*limit), *limit);
      }
      for (std::size_t other = d - d % size; other < d; ++other) {
        const cluster::Link link = cluster_.link(devices[d], devices[other]);
        places.link.bandwidth = std::min(places.link.bandwidth, link.bandwidth);
        places.link.latency = std::max(places.link.latency, link.latency);
      }
    }
  }
  return places;
}

Sharded PlanSplitter::made(const Places& places, std::int64_t rows, std::int64_t micro_batches, HeldOptions held,
                           bool limited) const {
  std::vector<cluster::Device> devices;
  for (std::size_t t = 0; t < places.slowest.size(); ++t) {
    devices.push_back(cluster_.device(places.slowest[t]));
    devices.back().memory = limited ? places.memory[t] : std::nullopt;
  }
  const std::vector<int> node_of(devices.size(), 0);
  const cluster::Cluster replica(cluster_.name(), cluster_.kind(), std::move(devices), node_of,
                                 {{cluster_.name(), places.link}}, cluster_.network());
  const cost::AnalyticCost cost(graph_, replica, request_.precision);
  Sharded sharded = shard(graph_, replica, cost,
                          {.axes = {{"tensor", static_cast<int>(places.slowest.size())}},
                           .annotations = request_.annotations,
                           .rows = rows,
                           .micro_batches = micro_batches,
                           .real_bytes = request_.real_bytes,
                           .held = std::move(held),
                           .split_rows = false});
  agree_on_parameters(graph_, *sharded.ops, *sharded.tensors, *sharded.mesh, sharded.cut.decision);
  return sharded;
}

std::optional<std::size_t> PlanSplitter::over_limit(const Component& component, const std::vector<StageOf>& stages,
                                                    const Places& places, const Sharded& decided) const {
  std::optional<std::size_t> worst;
  std::int64_t most = 0;
  for (const std::size_t s : component.stages) {
    const std::vector<OpId>& ops = stages[s].stage->ops.vector();
    const auto [known, is_new] = held_.try_emplace({&decided, ops, stages[s].live});
    if (is_new) {
      known->second = memory_of(graph_, *decided.ops, *decided.tensors, *decided.mesh, decided.cut.decision,
                                {request_.optimizer_bytes, ops, stages[s].live});
    }
    for (std::size_t t = 0; t < places.memory.size(); ++t) {
      if (!places.memory[t]) continue;
      const std::int64_t over = known->second[t].value() - places.memory[t]->value();
      if (over <= most) continue;
      most = over;
      worst = s;
    }
  }
  return worst;
}

const Sharded& PlanSplitter::decide(const Component& component, const std::vector<StageOf>& stages, std::int64_t rows,
                                    std::int64_t micro_batches) const {
  const Places where = places(component, stages, rows);
  const auto ask = [&](HeldOptions held, std::vector<std::int64_t> limits) -> const Sharded& {
    const bool limited = !limits.empty();
    const auto [known, is_new] =
        decided_.try_emplace({where.slowest, where.link.bandwidth.value(), where.link.latency.value(), rows,
                              micro_batches, std::move(limits), held.ops, held.live});
    if (is_new) {
      known->second = std::make_unique<const Sharded>(made(where, rows, micro_batches, std::move(held), limited));
    }
    return *known->second;
  };
  const Sharded& free = ask({.optimizer_bytes = request_.optimizer_bytes}, {});
  if (!request_.within_memory || !request_.annotations.empty()) return free;
  const auto over = over_limit(component, stages, where, free);
  if (!over) return free;
  std::vector<std::int64_t> limits;
  for (const auto& limit : where.memory) limits.push_back(limit ? limit->value() : -1);
  return ask({request_.optimizer_bytes, stages[*over].stage->ops.vector(), stages[*over].live}, std::move(limits));
}

}  // namespace millrace::shard
