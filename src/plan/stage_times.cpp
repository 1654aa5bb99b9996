// Sums operator times, once for each kind of device, and prices what crosses between stages by their slowest link.
#include "plan/stage_times.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "graph/footprint.h"
#include "plan/owners.h"
#include "plan/part_reductions.h"
#include "plan/plan_cuts.h"
#include "plan/rows.h"

namespace millrace::plan {
namespace {

// One device for each node that a stage is on, the lowest and the highest there.
struct OnNode {
  int node = 0;
  int first = 0;
  int last = 0;
};

std::vector<OnNode> by_node(const std::vector<int>& devices, const cluster::Cluster& cluster) {
  std::vector<OnNode> nodes;
  for (const int device : devices) {
    const int node = cluster.node_of(device);
    const auto found = std::find_if(nodes.rbegin(), nodes.rend(), [&](const OnNode& n) { return n.node == node; });
    if (found == nodes.rend()) {
      nodes.push_back({node, device, device});
    } else {
      found->last = device;
    }
  }
  return nodes;
}

// Pairs of devices of two stages, one for each different link between them.
class Pairs {
 public:
  Pairs(const Stage& from, const Stage& to, const cluster::Cluster& cluster) {
    const std::vector<OnNode> senders = by_node(from.devices, cluster), receivers = by_node(to.devices, cluster);
    for (const OnNode& sender : senders) {
      for (const OnNode& receiver : receivers) {
        // A device with itself (it may hold several stages) stands for a pair only where there is no other.
        const int a = sender.first == receiver.last ? sender.last : sender.first;
        const cluster::Link link = cluster.link(a, receiver.last);
        const auto known = std::find_if(pairs_.begin(), pairs_.end(), [&](const Pair& p) { return p.link == link; });
        if (known == pairs_.end()) pairs_.push_back({link, a, receiver.last});
        one_node_ = one_node_ && sender.node == receiver.node && senders.front().node == sender.node;
      }
    }
  }

  bool one_node() const { return one_node_; }

  // The slowest pair decides.
  Seconds message(Bytes bytes, const cost::CostModel& cost) const {
    Seconds slowest;
    for (const Pair& pair : pairs_) slowest = std::max(slowest, cost.transfer_time(bytes, pair.from, pair.to));
    return slowest;
  }

 private:
  struct Pair {
    cluster::Link link;
    int from = 0;
    int to = 0;
  };
  std::vector<Pair> pairs_;
  bool one_node_ = true;
};

class Timing {
 public:
  Timing(const Plan& plan, const Problem& problem)
      : plan_(plan), problem_(problem), cuts_(plan_cuts(plan, *problem.graph)) {
    if (problem.tensor != nullptr) parts_ = problem.tensor->parts(plan);
  }

  PlanTimes run() {
    std::vector<double> shares;
    for (const Pipeline& pipeline : plan_.pipelines) shares.push_back(pipeline.share);
    const std::vector<std::int64_t> rows = largest_remainder(problem_.batch, shares);
    times_.stages.resize(plan_.pipelines.size());
    for (int p = 0; p < static_cast<int>(plan_.pipelines.size()); ++p) {
      const Pipeline& pipeline = plan_.pipelines[static_cast<std::size_t>(p)];
      const std::int64_t micro_batches = pipeline.micro_batches;
      const std::int64_t longest = (rows[static_cast<std::size_t>(p)] + micro_batches - 1) / micro_batches;
      times_.stages[static_cast<std::size_t>(p)].resize(pipeline.stages.size());
      for (int s = 0; s < static_cast<int>(pipeline.stages.size()); ++s) compute({p, s}, longest);
      transfers(p);
    }
    reductions();
    times_.cuts = std::move(cuts_);
    return std::move(times_);
  }

 private:
  const Stage& stage(StageRef ref) const {
    return plan_.pipelines[static_cast<std::size_t>(ref.pipeline)].stages[static_cast<std::size_t>(ref.stage)];
  }
  StageTimes& times(StageRef ref) {
    return times_.stages[static_cast<std::size_t>(ref.pipeline)][static_cast<std::size_t>(ref.stage)];
  }

  void compute(StageRef ref, std::int64_t longest) {
    const Stage& where = stage(ref);
    StageTimes& result = times(ref);
    result.rows = largest_remainder(longest, where.shares);
    if (const StageParts* parts = parts_of(ref)) {
      compute_parts(where, *parts, result);
      return;
    }
    Seconds slowest;
    for (std::size_t r = 0; r < result.rows.size(); ++r) {
      const cost::OpTime total =
          stage_time(where, result.rows[r], where.devices[r * static_cast<std::size_t>(where.tensor_parallel)]);
      result.busy += total.total();
      if (r > 0 && total.total() <= slowest) continue;
      slowest = total.total();
      // The devices of a replica are taken to share all work; the simulation of a program knows what each does.
      const auto devices = static_cast<double>(where.tensor_parallel);
      result.forward = total.forward / devices;
      result.backward = total.backward() / devices;
      result.backward_weight = total.backward_weight / devices;
    }
  }

  const StageParts* parts_of(StageRef ref) const {
    if (parts_.empty()) return nullptr;
    std::size_t flat = static_cast<std::size_t>(ref.stage);
    for (int p = 0; p < ref.pipeline; ++p) flat += plan_.pipelines[static_cast<std::size_t>(p)].stages.size();
    return parts_[flat].get();
  }

  // The slowest device of the slowest replica, each with its own part of the work.
  void compute_parts(const Stage& where, const StageParts& parts, StageTimes& result) {
    const auto shards = static_cast<std::size_t>(where.tensor_parallel);
    Seconds slowest;
    for (std::size_t r = 0; r < result.rows.size(); ++r) {
      const std::span<const int> devices = std::span(where.devices).subspan(r * shards, shards);
      for (std::size_t t = 0; t < shards; ++t) {
        const cost::OpTime total = part_time(where, parts, t, result.rows[r], devices[t]);
        result.busy += total.total();
        if (total.total() <= slowest) continue;
        slowest = total.total();
        result.forward = total.forward;
        result.backward = total.backward();
        result.backward_weight = total.backward_weight;
      }
      const TensorStages::Exchanged exchanged = problem_.tensor->exchanged(where, parts, result.rows[r], devices);
      result.tensor_forward = std::max(result.tensor_forward, exchanged.forward);
      result.tensor_backward = std::max(result.tensor_backward, exchanged.backward);
      result.exchanged += exchanged.moved;
    }
  }

  const cost::OpTime& part_time(const Stage& where, const StageParts& parts, std::size_t shard, std::int64_t rows,
                                int device) {
    const int kind = problem_.cluster->first_alike(device);
    const auto [entry, is_new] = known_parts_.try_emplace({&parts, where.recompute.data(), shard, rows, kind});
    cost::OpTime& total = entry->second;
    if (!is_new) return total;
    for (const OpId op : where.ops) {
      const cost::OpTime time = problem_.cost->op_time(op, rows, kind);
      const double share = parts.share(op, shard);
      total.forward += share * time.forward;
      total.backward_input += share * time.backward_input;
      total.backward_weight += share * time.backward_weight;
    }
    for (const OpId op : where.recompute) {
      total.backward_input += parts.share(op, shard) * problem_.cost->op_time(op, rows, kind).forward;
    }
    return total;
  }

  // Equal pipelines share their lists of operators: the list itself is the key.
  const cost::OpTime& stage_time(const Stage& where, std::int64_t rows, int device) {
    const int kind = problem_.cluster->first_alike(device);
    const auto [entry, is_new] = known_.try_emplace({where.ops.data(), where.recompute.data(), rows, kind});
    cost::OpTime& total = entry->second;
    if (!is_new) return total;
    for (const OpId op : where.ops) {
      const cost::OpTime time = problem_.cost->op_time(op, rows, kind);
      total.forward += time.forward;
      total.backward_input += time.backward_input;
      total.backward_weight += time.backward_weight;
    }
    for (const OpId op : where.recompute) {  // run again before their backward (METHODS 3)
      total.backward_input += problem_.cost->op_time(op, rows, kind).forward;
    }
    return total;
  }

  void transfers(int pipeline) {
    const auto& stages = plan_.pipelines[static_cast<std::size_t>(pipeline)].stages;
    std::map<std::pair<int, int>, Pairs> pairs;
    const Cut& cut = cuts_.cuts[static_cast<std::size_t>(cuts_.of_pipeline[static_cast<std::size_t>(pipeline)])];
    for (const Crossing& crossing : cut.crossings) {
      // Stages that share a device share all of them, and pass rows in place.
      if (stages[static_cast<std::size_t>(crossing.from)].devices ==
          stages[static_cast<std::size_t>(crossing.to)].devices) {
        continue;
      }
      auto between = pairs.find({crossing.from, crossing.to});
      if (between == pairs.end()) {
        const Pairs made(stages[static_cast<std::size_t>(crossing.from)], stages[static_cast<std::size_t>(crossing.to)],
                         *problem_.cluster);
        between = pairs.emplace(std::pair(crossing.from, crossing.to), made).first;
        if (!made.one_node()) ++times_.node_crossings;
      }
      StageTimes& to = times({pipeline, crossing.to});
      std::int64_t all = 0;
      for (const std::int64_t count : to.rows) all += count;
      const std::int64_t most = *std::max_element(to.rows.begin(), to.rows.end());
      const Bytes row = tensor_bytes(problem_.graph->tensor(crossing.tensor), problem_.sizes.real);
      to.transfer += between->second.message(most * row, *problem_.cost);
      // Each device of a replica gets all of its rows.
      const int copies = parts_.empty() ? 1 : stages[static_cast<std::size_t>(crossing.to)].tensor_parallel;
      to.received += copies * all * row;
      times({pipeline, crossing.from}).sent += copies * all * row;
    }
  }

  void reductions() {
    times_.reductions = parts_.empty() ? shared_parameters(plan_, cuts_, *problem_.graph, problem_.sizes.real)
                                       : part_reductions(plan_, parts_, *problem_.graph, problem_.sizes.real);
    for (Reduction& reduction : times_.reductions) {
      reduction.time = problem_.cost->all_reduce_time(reduction.bytes, reduction.devices);
      for (const StageRef& ref : reduction.stages) times(ref).reduction += reduction.time;
    }
  }

  const Plan& plan_;
  const Problem& problem_;
  PlanCuts cuts_;
  PlanTimes times_;
  std::vector<std::shared_ptr<const StageParts>> parts_;  // by flat stage; empty: none has any
  std::map<std::tuple<const OpId*, const OpId*, std::int64_t, int>, cost::OpTime> known_;
  std::map<std::tuple<const StageParts*, const OpId*, std::size_t, std::int64_t, int>, cost::OpTime> known_parts_;
};

}  // namespace

PlanTimes plan_times(const Plan& plan, const Problem& problem) { return Timing(plan, problem).run(); }

}  // namespace millrace::plan
