// Annotated graphs are propagated; without annotations each axis is decided by the dynamic program, in turn.
#include "shard/sharding.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "shard/automatic.h"
#include "shard/index.h"
#include "shard/memory.h"

namespace millrace::shard {
namespace {

Decision everything_whole(const Graph& graph, const Mesh& mesh) {
  Decision decision;
  Placement whole{};
  for (int axis = 0; axis < mesh.axis_count(); ++axis) whole[index(axis)] = kReplicated;
  decision.placements.assign(graph.tensors().size(), whole);
  decision.origins.resize(graph.tensors().size());
  decision.uses.resize(index(graph.size()));
  return decision;
}

// The inverse time of the graph on the slowest device of each place of the axis.
std::vector<double> speeds_along(const Graph& graph, const Mesh& mesh, const cost::CostModel& cost, std::int64_t rows,
                                 int axis) {
  std::vector<double> times(index(mesh.axis_size(axis)));
  for (int device = 0; device < mesh.size(); ++device) {
    double time = 0;
    for (OpId op = 0; op < graph.size(); ++op) time += cost.op_time(op, rows, device).total().value();
    double& slowest = times[index(mesh.coordinate(device, axis))];
    slowest = std::max(slowest, time);
  }
  for (double& time : times) time = 1.0 / time;
  return times;
}

class Automatic {
 public:
  Automatic(Sharded& sharded, Mesh& mesh, const cluster::Cluster& cluster, const cost::CostModel& cost,
            const Request& request)
      : sharded_(sharded), mesh_(mesh), cluster_(cluster), cost_(cost), request_(request) {}

  Decision run() {
    Decision decision = everything_whole(*sharded_.graph, mesh_);
    for (int axis = 0; axis < mesh_.axis_count(); ++axis) {
      if (mesh_.axis_size(axis) > 1) decision = along(axis, std::move(decision));
    }
    return decision;
  }

 private:
  std::vector<Bytes> memory(const Decision& decision) const {
    return memory_of(*sharded_.graph, *sharded_.ops, *sharded_.tensors, mesh_, decision, request_.held);
  }

  double excess(const std::vector<Bytes>& held) const {
    double most = -std::numeric_limits<double>::infinity();
    for (int device = 0; device < mesh_.size(); ++device) {
      const auto& limit = cluster_.device(device).memory;
      if (!limit) continue;
      most = std::max(most, static_cast<double>(held[index(device)].value() - limit->value()));
    }
    return most;
  }

  // Memory has a price, which rises until the choice fits; then parts that a device cannot hold go to the others.
  Decision along(int axis, Decision before) {
    const std::vector<double> speeds = speeds_along(*sharded_.graph, mesh_, cost_, sharded_.tensors->rows(), axis);
    ChoiceOptions options{.axis = axis, .micro_batches = request_.micro_batches};
    options.ratio = mesh_.add_ratio(balanced_ratio(speeds, {}, 0));
    Choice choice = choose(options, before);
    double price = choice.time.value() / static_cast<double>(largest(memory(choice.decision)));
    constexpr int kPrices = 24;
    for (int i = 0; i < kPrices && excess(memory(choice.decision)) > 0; ++i, price *= 2) {
      options.ratio =
          mesh_.add_ratio(balanced_ratio(speeds, spare(choice.decision, axis), split_bytes(choice.decision, axis)));
      Choice other = choose(options, before);
      if (excess(memory(other.decision)) > 0) {
        options.seconds_per_byte = price;
        other = choose(options, before);
      }
      if (excess(memory(other.decision)) < excess(memory(choice.decision))) choice = std::move(other);
    }
    sharded_.exact = sharded_.exact && choice.exact;
    return std::move(choice.decision);
  }

  Choice choose(const ChoiceOptions& options, const Decision& before) const {
    return shard::choose(*sharded_.graph, *sharded_.ops, *sharded_.tensors, mesh_, *sharded_.links, cost_, before,
                         options);
  }

  static std::int64_t largest(const std::vector<Bytes>& held) {
    return std::max_element(held.begin(), held.end())->value();
  }

  // What the decision splits along the axis, and what each place can hold of it beside what it holds whole.
  double split_bytes(const Decision& decision, int axis) const {
    return static_cast<double>(
        split_memory(*sharded_.graph, *sharded_.ops, *sharded_.tensors, mesh_, decision, request_.held, axis).value());
  }

  std::vector<double> spare(const Decision& decision, int axis) const {
    const std::vector<Bytes> held = memory(decision);
    const double split = split_bytes(decision, axis);
    std::vector<double> least(index(mesh_.axis_size(axis)), std::numeric_limits<double>::infinity());
    for (int device = 0; device < mesh_.size(); ++device) {
      const auto& limit = cluster_.device(device).memory;
      if (!limit) continue;
      const double own = share_of(decision, axis, device) * split;
      double& place = least[index(mesh_.coordinate(device, axis))];
      place = std::min(place, static_cast<double>(limit->value() - held[index(device)].value()) + own);
    }
    return least;
  }

  double share_of(const Decision& decision, int axis, int device) const {
    for (const Placement& placement : decision.placements) {
      const Property property = placement[index(axis)];
      if (!property.is_split()) continue;
      const std::vector<double>& weights = mesh_.ratio(property.ratio);
      if (weights.empty()) break;
      return weights[index(mesh_.coordinate(device, axis))] / std::accumulate(weights.begin(), weights.end(), 0.0);
    }
    return 1.0 / mesh_.axis_size(axis);
  }

  Sharded& sharded_;
  Mesh& mesh_;
  const cluster::Cluster& cluster_;
  const cost::CostModel& cost_;
  const Request& request_;
};

}  // namespace

std::vector<double> balanced_ratio(const std::vector<double>& speeds, const std::vector<double>& spare,
                                   double split_bytes) {
  const double total = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  std::vector<double> shares;
  for (const double speed : speeds) shares.push_back(speed / total);
  std::vector<bool> full(speeds.size(), false);
  // What a full place cannot take goes to the others by their speed; each round fills one more at least.
  for (std::size_t round = 0; round < speeds.size() && !spare.empty() && split_bytes > 0; ++round) {
    double over = 0, open = 0;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      const double most = std::max(0.0, spare[i] / split_bytes);
      if (!full[i] && shares[i] > most) {
        over += shares[i] - most;
        shares[i] = most;
        full[i] = true;
      }
      if (!full[i]) open += speeds[i];
    }
    if (over <= 0 || open <= 0) break;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      if (!full[i]) shares[i] += over * speeds[i] / open;
    }
  }
  const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
  constexpr double kAlike = 1e-6;  // times of equal devices differ by rounding only
  if (*most - *least < kAlike * *most) return {};
  return shares;
}

Sharded shard(const Graph& graph, const cluster::Cluster& cluster, const cost::CostModel& cost,
              const Request& request) {
  Sharded sharded{.graph = &graph, .annotations = request.annotations};
  sharded.ops = std::make_unique<OpTable>(graph);
  sharded.tensors =
      std::make_unique<TensorTable>(graph, *sharded.ops, request.rows, request.real_bytes, request.split_rows);
  auto mesh = std::make_unique<Mesh>(request.axes);
  sharded.links = std::make_unique<MeshLinks>(*mesh, cluster);
  sharded.automatic = request.annotations.empty();
  Decision decision;
  if (sharded.automatic) {
    decision = Automatic(sharded, *mesh, cluster, cost, request).run();
  } else {
    const auto given = resolve(request.annotations, graph, *sharded.tensors, *mesh);
    decision = propagate(graph, *sharded.ops, *sharded.tensors, *mesh, *sharded.links, given);
  }
  sharded.memory = memory_of(graph, *sharded.ops, *sharded.tensors, *mesh, decision, request.held);
  for (int device = 0; device < mesh->size(); ++device) {
    const auto& limit = cluster.device(device).memory;
    if (limit && sharded.memory[index(device)] > *limit) sharded.fits = false;
  }
  sharded.cut =
      expand(graph, *sharded.ops, *sharded.tensors, *mesh, *sharded.links, std::move(decision), request.expand);
  sharded.mesh = std::move(mesh);
  return sharded;
}

}  // namespace millrace::shard
