// Adds up layers, and asks the links of the cluster for everything between devices.
#include "planner/step_costs.h"

#include <algorithm>

#include "cost/collectives.h"
#include "cost/saturation.h"

namespace millrace::planner {
namespace {

using cluster::Link;

Bytes whole(double bytes) { return Bytes(static_cast<std::int64_t>(bytes)); }

// Links as the devices of one node see them.
class Links {
 public:
  Links(const Layout& layout, const cluster::Cluster& cluster)
      : layout_(layout),
        inner_(cluster.nodes().front().link),
        port_{BytesPerSecond(cluster.network().link.bandwidth.value() / cluster.network().oversubscription),
              cluster.network().link.latency} {
    while (per_node_ < cluster.size() && cluster.node_of(per_node_) == 0) ++per_node_;
  }

  // All-reduce over the devices of a tensor-parallel group, which are neighbours.
  double tensor(double bytes) const {
    const int inside = std::min(layout_.tensor, per_node_);
    return all_reduce(bytes, layout_.tensor / inside, inside, 1);
  }

  // Over the replicas of a device. The groups of a node share its port.
  double data(double bytes) const {
    const int inside = std::clamp(per_node_ / layout_.tensor, 1, layout_.data);
    return all_reduce(bytes, layout_.data / inside, inside, std::min(layout_.tensor, per_node_));
  }

  // A message of each device of a stage to its partner in the next; all devices of a node send at once.
  double hop(int from, int to, double bytes) const {
    const int stride = layout_.tensor * layout_.data;
    const bool inside = from * stride / per_node_ == to * stride / per_node_;
    return (inside ? inner_ : shared(per_node_)).time(whole(bytes)).value();
  }

 private:
  Link shared(int sharers) const { return {BytesPerSecond(port_.bandwidth.value() / sharers), port_.latency}; }

  double all_reduce(double bytes, int nodes, int per_node, int sharers) const {
    const int devices = nodes * per_node;
    if (devices < 2) return 0;
    const Bytes amount = whole(bytes);
    if (nodes == 1) {
      return std::min(cost::ring_all_reduce(amount, devices, inner_), cost::tree_all_reduce(amount, devices, inner_))
          .value();
    }
    const Link port = shared(sharers);
    const Link slowest{std::min(port.bandwidth, per_node > 1 ? inner_.bandwidth : port.bandwidth), port.latency};
    Seconds best =
        std::min(cost::ring_all_reduce(amount, devices, slowest), cost::tree_all_reduce(amount, devices, slowest));
    if (per_node > 1) {
      best = std::min(best, cost::hierarchical_all_reduce(amount, nodes, per_node, inner_, port));
    }
    return best.value();
  }

  const Layout& layout_;
  Link inner_, port_;
  int per_node_ = 0;
};

// Sums of passes over what lies on one virtual stage.
class StageSum {
 public:
  StageSum(double all_reduce, Seconds dispatch) : all_reduce_(all_reduce), dispatch_(dispatch.value()) {}

  void add(const cost::BlockCost& block, int times) {
    add(times_.forward, block.forward, times);
    add(times_.backward_input, block.backward_input, times);
    add(times_.backward_input, block.recompute, times);
    add(times_.backward_weight, block.backward_weight, times);
  }
  const StageTimes& times() const { return times_; }

 private:
  // Layer by layer: a host that runs behind in one does not catch up in the next.
  void add(PassTime& sum, const cost::PassCost& pass, int times) const {
    const double tensor = pass.collectives * all_reduce_;
    const double floor = pass.operators * dispatch_ - tensor;
    sum.compute += times * std::max(pass.compute.value(), floor);
    sum.tensor += times * tensor;
  }

  double all_reduce_, dispatch_;
  StageTimes times_;
};

void set_profiled(const Layout& layout, StepCosts& costs) {
  const ProfiledStage& profile = *layout.profiled;
  const double share = 1.0 / layout.chunks;
  costs.stages.assign(
      static_cast<std::size_t>(layout.stages()),
      {{profile.forward * share, 0}, {profile.backward_input * share, 0}, {profile.backward_weight * share, 0}});
  costs.hops.assign(static_cast<std::size_t>(layout.stages() - 1), profile.hop);
}

void set_modelled(const Layout& layout, const cluster::Cluster& cluster, const Links& links, StepCosts& costs) {
  const cost::DeviceRates rates = cost::device_rates(cluster.device(0), layout.precision);
  const cost::Slice slice{layout.micro_batch, layout.tensor, layout.sequence_parallel};
  const double bytes = cost::activation_bytes(layout.model, layout.micro_batch);
  const double all_reduce = links.tensor(bytes);
  const cost::BlockCost layer = cost::layer_cost(layout.model, slice, layout.recompute, layout.software, rates);
  const std::vector<int> layers = layers_of_stages(layout);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    StageSum sum(all_reduce, cluster.host().dispatch);
    sum.add(layer, layers[i]);
    if (i == 0) sum.add(cost::embedding_cost(layout.model, slice, rates), 1);
    if (i + 1 == layers.size()) sum.add(cost::head_cost(layout.model, slice, rates), 1);
    costs.stages.push_back(sum.times());
  }
  // Each device sends its part; where the sequence is not split, the group gathers the parts again.
  const double gather = layout.sequence_parallel ? 0 : all_reduce / 2;
  for (int i = 0; i + 1 < layout.stages(); ++i) {
    costs.hops.push_back(links.hop(i % layout.pipeline, (i + 1) % layout.pipeline, bytes / layout.tensor) + gather);
  }
}

}  // namespace

StepCosts step_costs(const Layout& layout, const cluster::Cluster& cluster) {
  const Links links(layout, cluster);
  StepCosts costs;
  if (layout.profiled) {
    set_profiled(layout, costs);
  } else {
    set_modelled(layout, cluster, links, costs);
  }
  const cost::DeviceRates rates = cost::device_rates(cluster.device(0), layout.precision);
  const std::vector<int> layers = layers_of_stages(layout);
  const double embedding = layout.model.embedding_parameters() / layout.tensor;
  const bool sharded = layout.sharded_optimizer;
  costs.update.assign(static_cast<std::size_t>(layout.pipeline), 0);
  for (int i = 0; i < layout.stages(); ++i) {
    double parameters = layers[static_cast<std::size_t>(i)] * layout.model.layer_parameters() / layout.tensor;
    if (i == 0 || (i + 1 == layout.stages() && layout.pipeline > 1)) parameters += embedding;
    const double reduced = links.data(layout.software.gradient_bytes * parameters);
    // Sharded: each replica gets its part of the sums, updates it, and all gather the new weights of 16 bits.
    costs.reduction.push_back(sharded ? reduced / 2 : reduced);
    costs.gathering.push_back(sharded ? links.data(2 * parameters) / 2 : 0);
    const double updated = parameters / (sharded ? layout.data : 1);
    costs.update[static_cast<std::size_t>(i % layout.pipeline)] +=
        rates.memory.time(layout.software.optimizer_bytes * updated).value();
  }
  if (layout.pipeline > 1) {
    const double bytes = layout.software.gradient_bytes * embedding;
    costs.tied = 2 * links.hop(0, layout.pipeline - 1, bytes / 2);
  }
  return costs;
}

}  // namespace millrace::planner
