// Groups of devices as a cluster of their own, with costs that know what each device of a group does.
#include "planner/device_groups.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/index.h"

namespace millrace::planner {
namespace {

class GroupCosts final : public cost::CostModel {
 public:
  GroupCosts(const Graph& graph, const cluster::Cluster& cluster, const cost::CostModel& cost, const TensorSplit& split,
             int tensor, const Plan& like)
      : cost_(cost), split_(split), tensor_(tensor) {
    for (int first = 0; first < cluster.size(); first += tensor) {
      Group& group = groups_.emplace_back();
      group.devices.resize(at(tensor));
      std::iota(group.devices.begin(), group.devices.end(), first);
      Plan whole = like;
      whole.pipelines.resize(1);
      whole.pipelines.front().stages = {Stage{.ops = OpList::range(0, static_cast<OpId>(graph.size())),
                                              .devices = group.devices,
                                              .shares = {1.0},
                                              .tensor_parallel = tensor,
                                              .recompute = {}}};
      group.parts = split.parts(whole).front();
      group.behind.resize(graph.operators().size());
      for (const TensorCollective& one : split.collectives(whole.pipelines.front().stages.front().ops, *group.parts)) {
        group.behind[at(one.op)].push_back(one);
      }
      note_owned(graph, group);
    }
  }

  cost::OpTime op_time(OpId op, std::int64_t rows, int device) const override {
    if (rows == 0) return {};
    const Group& group = groups_[at(device)];
    cost::OpTime slowest;
    for (std::size_t t = 0; t < group.devices.size(); ++t) {
      const double share = group.parts->share(op, t);
      const cost::OpTime one = cost_.op_time(op, rows, group.devices[t]);
      if (share * one.total() <= slowest.total()) continue;
      slowest = {share * one.forward, share * one.backward_input, share * one.backward_weight};
    }
    for (const TensorCollective& one : group.behind[at(op)]) {
      (one.backward ? slowest.backward_input : slowest.forward) += split_.time(one, rows, group.devices);
    }
    return slowest;
  }

  Seconds transfer_time(Bytes amount, int from, int to) const override {
    Seconds slowest;
    for (int t = 0; t < tensor_; ++t) {
      slowest = std::max(slowest, cost_.transfer_time(amount, from * tensor_ + t, to * tensor_ + t));
    }
    return slowest;
  }

  // Of the parts of one place: those of all places are summed at the same time.
  Seconds all_reduce_time(Bytes amount, std::span<const int> devices) const override {
    std::vector<int> first;
    for (const int group : devices) first.push_back(group * tensor_);
    return first.empty() ? Seconds(0) : cost_.all_reduce_time(owned(amount, devices.front()), first);
  }

  std::optional<Seconds> update_time(Bytes amount, int device) const override {
    return cost_.update_time(owned(amount, device), device * tensor_);
  }

 private:
  struct Group {
    std::vector<int> devices;
    std::shared_ptr<const StageParts> parts;
    std::vector<std::vector<TensorCollective>> behind;  // by operator
    double owned = 1;                                   // of all parameters, by the device that has most
  };

  static void note_owned(const Graph& graph, Group& group) {
    double all = 0;
    std::vector<double> held(group.devices.size(), 0.0);
    for (const auto& [tensor, holding] : group.parts->parameters) {
      const auto elements = static_cast<double>(graph.tensor(tensor).shape.elements_per_sample());
      all += elements;
      for (std::size_t t = 0; t < held.size(); ++t) {
        const bool cut = holding.kind == Holding::Kind::part;
        held[t] += cut ? elements * static_cast<double>(holding.borders[t + 1] - holding.borders[t]) /
                             static_cast<double>(holding.borders.back())
                       : elements;
      }
    }
    if (all > 0) group.owned = *std::max_element(held.begin(), held.end()) / all;
  }

  Bytes owned(Bytes amount, int group) const {
    return Bytes(static_cast<std::int64_t>(static_cast<double>(amount.value()) * groups_[at(group)].owned));
  }

  const cost::CostModel& cost_;
  const TensorSplit& split_;
  int tensor_;
  std::vector<Group> groups_;
};

}  // namespace

std::unique_ptr<cost::CostModel> group_costs(const Graph& graph, const cluster::Cluster& cluster,
                                             const cost::CostModel& cost, const TensorSplit& split, int tensor,
                                             const Plan& like) {
  return std::make_unique<GroupCosts>(graph, cluster, cost, split, tensor, like);
}

// Sums tell groups of different devices apart.
cluster::Cluster device_groups(const cluster::Cluster& cluster, int tensor, std::optional<Bytes> memory_limit) {
  std::vector<cluster::Device> devices;
  std::vector<int> node_of;
  for (int first = 0; first < cluster.size(); first += tensor) {
    cluster::Device group = cluster.device(first);
    std::optional<Bytes> memory = Bytes(0);
    for (int t = 0; t < tensor; ++t) {
      const cluster::Device& device = cluster.device(first + t);
      std::optional<Bytes> own = device.memory;
      if (memory_limit) own = std::min(own.value_or(*memory_limit), *memory_limit);
      memory = memory && own ? std::optional(*memory + *own) : std::nullopt;
      if (t == 0) continue;
      group.speed += device.speed;
      group.bandwidth = BytesPerSecond(group.bandwidth.value() + device.bandwidth.value());
      for (auto& [precision, flops] : group.flops) {
        const auto other = device.flops.find(precision);
        if (other != device.flops.end()) flops = FlopsPerSecond(flops.value() + other->second.value());
      }
    }
    group.memory = memory;
    devices.push_back(std::move(group));
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

void take_groups_apart(const plan::Problem& problem, const std::function<void(Plan&)>& apart,
                       const std::function<std::optional<ProgramMemory>(const Plan&)>& device_memory,
                       Ranking& ranking) {
  std::vector<plan::Candidate> fitting;
  std::optional<plan::Candidate> leanest;  // of those that do not fit
  ranking.least_memory.reset();            // of a group
  for (plan::Candidate& candidate : ranking.plans) {
    apart(candidate.plan);
    plan::Problem its = problem;
    its.schedule = candidate.plan.schedule;
    its.micro_batches = candidate.report.micro_batches;
    plan::PlanReport report = closed_form(its)->evaluate(candidate.plan);
    report.partitioner = candidate.report.partitioner;
    report.order = candidate.report.order;
    report.stopped_by = candidate.report.stopped_by;
    report.planning_time_s = candidate.report.planning_time_s;
    candidate.report = std::move(report);
    if (candidate.report.feasible) {
      fitting.push_back(std::move(candidate));
      continue;
    }
    ranking.refusals.push_back({candidate.report.partitioner, candidate.report.schedule, candidate.report.micro_batches,
                                candidate.report.pipelines,
                                static_cast<int>(candidate.plan.pipelines.front().stages.size()),
                                plan::Refusal::memory_exceeded, candidate.report.why_not});
    if (!leanest || candidate.report.peak_memory_bytes < leanest->report.peak_memory_bytes) {
      leanest = std::move(candidate);
    }
  }
  ranking.plans = std::move(fitting);
  if (ranking.plans.empty() && leanest) {
    const std::int64_t counted = leanest->report.peak_memory_bytes;
    const auto held = device_memory ? device_memory(leanest->plan) : std::nullopt;
    if (held) take_memory(*held, leanest->report);
    ranking.least_memory =
        LeastMemory{Bytes(std::max(counted, leanest->report.peak_memory_bytes)), false, fullest_stage(leanest->report)};
  }
  const bool more_is_better = problem.objective == plan::Objective::memory_efficiency;
  std::stable_sort(ranking.plans.begin(), ranking.plans.end(), [&](const auto& a, const auto& b) {
    const double x = a.report.objective_value.value_or(0), y = b.report.objective_value.value_or(0);
    return more_is_better ? x > y : x < y;
  });
}

}  // namespace millrace::planner
