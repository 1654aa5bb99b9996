// Takes a graph apart in turn into what lies between cut nodes (series) and into branches without a common edge
// (parallel), always over a depth-first order.
#include "partitioners/common/cluster_order.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>

#include "graph/footprint.h"

namespace millrace::partitioners {
namespace {

constexpr int kMostLevels = 64;
constexpr std::int64_t kReal = 4;  // only ratios of bytes count

class Clustering {
 public:
  Clustering(const Graph& graph, const OpEdges& successors, std::span<const double> costs, double most_item_cost)
      : graph_(graph),
        after_(successors),
        before_(predecessors(successors)),
        costs_(costs),
        most_item_cost_(most_item_cost),
        region_(static_cast<std::size_t>(graph.size()), 0),
        root_(static_cast<std::size_t>(graph.size()), -1) {}

  ClusterOrder run() {
    series(topological_order(graph_, after_, TieBreak::depth_first), 0);
    return std::move(result_);
  }

  // Positions, in `ops`, of the nodes that all paths of the region pass. Edges from and to other regions count as
  // edges from a virtual source and to a virtual sink.
  std::vector<std::size_t> cut_positions(const std::vector<OpId>& ops) const {
    std::vector<std::size_t> cuts;
    std::int64_t open = 0;
    for (const OpId op : ops) open += inside(before_, op).open ? 1 : 0;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const Ends in = inside(before_, ops[i]), out = inside(after_, ops[i]);
      open -= in.count + (in.open ? 1 : 0);
      if (open == 0) cuts.push_back(i);
      open += out.count + (out.open ? 1 : 0);
    }
    return cuts;
  }

 private:
  struct Ends {
    std::int64_t count = 0;  // edges inside the region
    bool open = false;       // an edge from the source or to the sink
  };

  std::size_t at(OpId op) const { return static_cast<std::size_t>(op); }

  Ends inside(const OpEdges& edges, OpId op) const {
    Ends ends;
    for (const OpId other : edges.of(op)) {
      if (region_[at(other)] == region_[at(op)]) {
        ++ends.count;
      } else {
        ends.open = true;
      }
    }
    if (ends.count == 0) ends.open = true;
    return ends;
  }

  double cost(const std::vector<OpId>& ops) const {
    return std::accumulate(ops.begin(), ops.end(), 0.0, [&](double sum, OpId op) { return sum + costs_[at(op)]; });
  }

  void emit(const std::vector<OpId>& ops, bool one_item) {
    for (const OpId op : ops) {
      result_.order.push_back(op);
      if (!one_item) result_.item_ends.push_back(result_.order.size());
    }
    if (one_item) result_.item_ends.push_back(result_.order.size());
  }

  // `ops`, in depth-first order, are all of one region.
  void series(const std::vector<OpId>& ops, int level) {
    const std::vector<std::size_t> cuts = cut_positions(ops);
    std::vector<OpId> between;
    std::size_t next = 0;
    for (const std::size_t cut : cuts) {
      between.assign(ops.begin() + static_cast<std::ptrdiff_t>(next), ops.begin() + static_cast<std::ptrdiff_t>(cut));
      subgraph(between, level, false);
      emit({ops[cut]}, false);
      next = cut + 1;
    }
    between.assign(ops.begin() + static_cast<std::ptrdiff_t>(next), ops.end());
    subgraph(between, level, cuts.empty());
  }

  // `whole`: it was looked at for cut nodes already.
  void subgraph(const std::vector<OpId>& ops, int level, bool whole) {
    if (ops.empty()) return;
    if (ops.size() == 1 || cost(ops) <= most_item_cost_) return emit(ops, true);
    if (level >= kMostLevels) return emit(ops, false);
    if (!whole) enter(ops);
    std::vector<std::vector<OpId>> found = branches(ops);
    if (found.size() == 1) return whole ? emit(ops, false) : series(ops, level + 1);
    for (const std::vector<OpId>& branch : found) {
      if (branch.size() == 1 || cost(branch) <= most_item_cost_) {
        emit(branch, true);
      } else {
        enter(branch);
        series(branch, level + 1);
      }
    }
  }

  void enter(const std::vector<OpId>& ops) {
    ++regions_;
    for (const OpId op : ops) region_[at(op)] = regions_;
  }

  OpId root(OpId op) {
    while (root_[at(op)] != op) op = root_[at(op)] = root_[at(root_[at(op)])];
    return op;
  }

  // Parts of a region that share no edge, by falling cost over communication; ties keep the depth-first order.
  std::vector<std::vector<OpId>> branches(const std::vector<OpId>& ops) {
    for (const OpId op : ops) root_[at(op)] = op;
    for (const OpId op : ops) {
      for (const OpId next : after_.of(op)) {
        if (region_[at(next)] == region_[at(op)]) root_[at(root(next))] = root(op);
      }
    }
    std::vector<std::vector<OpId>> parts;
    std::vector<std::pair<OpId, std::size_t>> part_of;  // by root
    for (const OpId op : ops) {
      if (root(op) == op) part_of.emplace_back(op, 0);
    }
    if (part_of.size() == 1) return {ops};
    std::sort(part_of.begin(), part_of.end());
    parts.resize(part_of.size());
    for (const OpId op : ops) {
      const auto it = std::lower_bound(part_of.begin(), part_of.end(), std::pair<OpId, std::size_t>(root(op), 0));
      parts[static_cast<std::size_t>(it - part_of.begin())].push_back(op);
    }
    for (std::size_t i = 0; i < ops.size(); ++i) position(ops[i]) = i;
    std::vector<std::pair<double, std::size_t>> rank;
    for (std::size_t i = 0; i < parts.size(); ++i) rank.emplace_back(-cost_over_communication(parts[i]), i);
    std::sort(rank.begin(), rank.end(), [&](const auto& a, const auto& b) {
      if (a.first != b.first) return a.first < b.first;
      return position(parts[a.second][0]) < position(parts[b.second][0]);
    });
    std::vector<std::vector<OpId>> sorted;
    for (const auto& item : rank) sorted.push_back(std::move(parts[item.second]));
    return sorted;
  }

  double cost_over_communication(const std::vector<OpId>& part) const {
    double bytes = 0;
    for (const OpId op : part) {
      for (const TensorId input : graph_.op(op).inputs) {
        if (outside(graph_.tensor(input).producer, op)) bytes += size(input);
      }
      for (const TensorId output : graph_.op(op).outputs) {
        const auto readers = graph_.consumers(output);
        if (std::any_of(readers.begin(), readers.end(), [&](OpId reader) { return outside(reader, op); })) {
          bytes += size(output);
        }
      }
    }
    return bytes > 0 ? cost(part) / bytes : std::numeric_limits<double>::infinity();
  }
  // Branches of one region share no edge: what is in another region is outside.
  bool outside(OpId other, OpId op) const { return other >= 0 && region_[at(other)] != region_[at(op)]; }
  double size(TensorId id) const { return static_cast<double>(tensor_bytes(graph_.tensor(id), kReal).value()); }
  std::size_t& position(OpId op) {
    position_.resize(region_.size());
    return position_[at(op)];
  }

  const Graph& graph_;
  const OpEdges& after_;
  const OpEdges before_;
  std::span<const double> costs_;
  double most_item_cost_;
  std::vector<std::int32_t> region_;  // of each operator: the subgraph that is looked at
  std::int32_t regions_ = 0;
  std::vector<OpId> root_;  // union-find
  std::vector<std::size_t> position_;
  ClusterOrder result_;
};

}  // namespace

ClusterOrder cluster_order(const Graph& graph, const OpEdges& successors, std::span<const double> costs,
                           double most_item_cost) {
  return Clustering(graph, successors, costs, most_item_cost).run();
}

std::vector<OpId> cut_nodes(const Graph& graph, const OpEdges& successors) {
  const Order order = topological_order(graph, successors, TieBreak::depth_first);
  std::vector<OpId> nodes;
  for (const std::size_t cut : Clustering(graph, successors, {}, 0).cut_positions(order)) nodes.push_back(order[cut]);
  return nodes;
}

}  // namespace millrace::partitioners
