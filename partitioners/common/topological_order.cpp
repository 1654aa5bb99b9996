// Kahn's algorithm with three priorities, each O((V + E) log V).
#include "partitioners/common/topological_order.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "graph/footprint.h"

namespace millrace::partitioners {
namespace {

// Operators that read an output of `op`, distinct, ascending.
std::vector<OpId> successors(const Graph& graph, OpId op) {
  std::vector<OpId> readers;
  for (const TensorId output : graph.op(op).outputs) {
    const auto consumers = graph.consumers(output);
    readers.insert(readers.end(), consumers.begin(), consumers.end());
  }
  std::sort(readers.begin(), readers.end());
  readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
  return readers;
}

std::vector<int> predecessor_counts(const Graph& graph) {
  std::vector<int> counts(static_cast<std::size_t>(graph.size()), 0);
  for (OpId op = 0; op < graph.size(); ++op) {
    for (const OpId next : successors(graph, op)) ++counts[static_cast<std::size_t>(next)];
  }
  return counts;
}

// The operators that are ready, smallest key first. Keys may be lowered while an operator waits.
class Ready {
 public:
  explicit Ready(std::size_t size) : key_(size, 0), waits_(size, false) {}

  void insert(OpId op, std::int64_t key) {
    key_[static_cast<std::size_t>(op)] = key;
    waits_[static_cast<std::size_t>(op)] = true;
    queue_.emplace(key, op);
  }
  void lower(OpId op, std::int64_t by) {
    if (!waits_[static_cast<std::size_t>(op)]) return;
    std::int64_t& key = key_[static_cast<std::size_t>(op)];
    queue_.erase({key, op});
    key -= by;
    queue_.emplace(key, op);
  }
  OpId take() {
    const OpId op = queue_.begin()->second;
    queue_.erase(queue_.begin());
    waits_[static_cast<std::size_t>(op)] = false;
    return op;
  }
  bool empty() const { return queue_.empty(); }

 private:
  std::set<std::pair<std::int64_t, OpId>> queue_;
  std::vector<std::int64_t> key_;
  std::vector<bool> waits_;
};

// Keys for fewest_live_bytes: what an operator adds to the live bytes, less what its inputs free when it is their
// last reader.
class LiveBytes {
 public:
  explicit LiveBytes(const Graph& graph) : graph_(graph) {
    for (TensorId id = 0; id < static_cast<TensorId>(graph.tensors().size()); ++id) {
      readers_left_.push_back(graph.consumers(id).size());
    }
  }

  std::int64_t key(OpId op) const {
    std::int64_t bytes = output_bytes_per_sample(graph_, op, kReal).value();
    for (const TensorId input : distinct_inputs(op)) {
      if (readers_left_[static_cast<std::size_t>(input)] == 1) bytes -= size(input);
    }
    return bytes;
  }

  void emitted(OpId op, const std::vector<bool>& done, Ready& ready) {
    for (const TensorId input : distinct_inputs(op)) {
      if (--readers_left_[static_cast<std::size_t>(input)] != 1) continue;
      for (const OpId reader : graph_.consumers(input)) {
        if (!done[static_cast<std::size_t>(reader)]) ready.lower(reader, size(input));
      }
    }
  }

 private:
  static constexpr std::int64_t kReal = 4;  // only ratios count

  std::int64_t size(TensorId id) const { return tensor_bytes(graph_.tensor(id), kReal).value(); }
  std::vector<TensorId> distinct_inputs(OpId op) const {
    std::vector<TensorId> inputs = graph_.op(op).inputs;
    std::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    return inputs;
  }

  const Graph& graph_;
  std::vector<std::size_t> readers_left_;
};

std::vector<std::int64_t> path_lengths(const Graph& graph) {
  std::vector<std::int64_t> length(static_cast<std::size_t>(graph.size()), 1);
  for (OpId op = static_cast<OpId>(graph.size()) - 1; op >= 0; --op) {
    for (const OpId next : successors(graph, op)) {
      length[static_cast<std::size_t>(op)] =
          std::max(length[static_cast<std::size_t>(op)], length[static_cast<std::size_t>(next)] + 1);
    }
  }
  return length;
}

}  // namespace

Order topological_order(const Graph& graph, TieBreak tie_break) {
  const auto size = static_cast<std::size_t>(graph.size());
  std::vector<int> waiting = predecessor_counts(graph);
  std::vector<std::int64_t> lengths;
  if (tie_break == TieBreak::longest_path) lengths = path_lengths(graph);
  LiveBytes live(graph);
  Ready ready(size);
  std::vector<bool> done(size, false);
  std::int64_t readied = 0;  // later ones first; of those that one operator readies, the lowest number
  const auto insert = [&](OpId op) {
    switch (tie_break) {
      case TieBreak::depth_first: return ready.insert(op, -readied);
      case TieBreak::fewest_live_bytes: return ready.insert(op, live.key(op));
      case TieBreak::longest_path: return ready.insert(op, -lengths[static_cast<std::size_t>(op)]);
    }
  };
  for (OpId op = 0; op < graph.size(); ++op) {
    if (waiting[static_cast<std::size_t>(op)] == 0) insert(op);
  }
  Order order;
  order.reserve(size);
  while (!ready.empty()) {
    const OpId op = ready.take();
    order.push_back(op);
    done[static_cast<std::size_t>(op)] = true;
    ++readied;
    if (tie_break == TieBreak::fewest_live_bytes) live.emitted(op, done, ready);
    for (const OpId next : successors(graph, op)) {
      if (--waiting[static_cast<std::size_t>(next)] == 0) insert(next);
    }
  }
  return order;
}

std::vector<Order> topological_orders(const Graph& graph) {
  std::vector<Order> orders;
  for (const TieBreak tie : {TieBreak::depth_first, TieBreak::fewest_live_bytes, TieBreak::longest_path}) {
    Order order = topological_order(graph, tie);
    if (std::find(orders.begin(), orders.end(), order) == orders.end()) orders.push_back(std::move(order));
  }
  return orders;
}

}  // namespace millrace::partitioners
