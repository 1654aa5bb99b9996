// Kahn's algorithm with several priorities: a stack for depth-first, else a heap, O((V + E) log V).
#include "partitioners/common/topological_order.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <queue>
#include <utility>

#include "graph/footprint.h"

namespace millrace::partitioners {
namespace {

std::vector<int> counts_of_predecessors(const OpEdges& successors) {
  std::vector<int> counts(successors.start.size() - 1, 0);
  for (const OpId next : successors.ends) ++counts[static_cast<std::size_t>(next)];
  return counts;
}

// The operators that are ready, smallest key first. Keys may be lowered while an operator waits: it is queued again,
// and what it was queued as before is passed over.
class Ready {
 public:
  explicit Ready(std::size_t size) : key_(size, 0), waits_(size, false) {}

  void insert(OpId op, std::int64_t key) {
    key_[static_cast<std::size_t>(op)] = key;
    waits_[static_cast<std::size_t>(op)] = true;
    queue_.emplace(key, op);
  }
  void lower(OpId op, std::int64_t by) {
    if (!waits_[static_cast<std::size_t>(op)] || by == 0) return;
    queue_.emplace(key_[static_cast<std::size_t>(op)] -= by, op);
  }
  OpId take() {
    for (;;) {
      const auto [key, op] = queue_.top();
      queue_.pop();
      if (!waits_[static_cast<std::size_t>(op)] || key != key_[static_cast<std::size_t>(op)]) continue;
      waits_[static_cast<std::size_t>(op)] = false;
      return op;
    }
  }

 private:
  std::priority_queue<std::pair<std::int64_t, OpId>, std::vector<std::pair<std::int64_t, OpId>>, std::greater<>> queue_;
  std::vector<std::int64_t> key_;
  std::vector<bool> waits_;
};

// Keys for fewest_live_bytes: what an operator adds to the live bytes, less what its inputs free when it is their
// last reader.
class LiveBytes {
 public:
  explicit LiveBytes(const Graph& graph) : graph_(graph), readers_left_(graph.tensors().size()) {
    for (TensorId id = 0; id < static_cast<TensorId>(readers_left_.size()); ++id) {
      readers_left_[static_cast<std::size_t>(id)] = graph.consumers(id).size();
    }
  }

  std::int64_t key(OpId op) {
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
  const std::vector<TensorId>& distinct_inputs(OpId op) {
    inputs_ = graph_.op(op).inputs;
    std::sort(inputs_.begin(), inputs_.end());
    inputs_.erase(std::unique(inputs_.begin(), inputs_.end()), inputs_.end());
    return inputs_;
  }

  const Graph& graph_;
  std::vector<std::size_t> readers_left_;
  std::vector<TensorId> inputs_;
};

std::vector<std::int64_t> path_lengths(const OpEdges& successors) {
  std::vector<std::int64_t> length(successors.start.size() - 1, 1);
  for (auto op = static_cast<OpId>(length.size()) - 1; op >= 0; --op) {  // canonical order is topological
    for (const OpId next : successors.of(op)) {
      length[static_cast<std::size_t>(op)] =
          std::max(length[static_cast<std::size_t>(op)], length[static_cast<std::size_t>(next)] + 1);
    }
  }
  return length;
}

// Later ones first: a stack. Of those that one operator readies the lowest number, or the highest.
Order depth_first(const OpEdges& successors, std::vector<int> waiting, bool last_first) {
  std::vector<OpId> stack;
  const auto size = static_cast<OpId>(waiting.size());
  for (OpId i = 0; i < size; ++i) {
    const OpId op = last_first ? i : size - 1 - i;
    if (waiting[static_cast<std::size_t>(op)] == 0) stack.push_back(op);
  }
  Order order;
  order.reserve(waiting.size());
  while (!stack.empty()) {
    const OpId op = stack.back();
    stack.pop_back();
    order.push_back(op);
    const auto next = successors.of(op);
    for (std::size_t i = 0; i < next.size(); ++i) {
      const OpId reader = next[last_first ? i : next.size() - 1 - i];
      if (--waiting[static_cast<std::size_t>(reader)] == 0) stack.push_back(reader);
    }
  }
  return order;
}

}  // namespace

Order topological_order(const Graph& graph, const OpEdges& successors, TieBreak tie_break) {
  std::vector<int> waiting = counts_of_predecessors(successors);
  if (tie_break == TieBreak::depth_first || tie_break == TieBreak::last_branch_first) {
    return depth_first(successors, std::move(waiting), tie_break == TieBreak::last_branch_first);
  }
  const auto size = static_cast<std::size_t>(graph.size());
  const bool by_bytes = tie_break == TieBreak::fewest_live_bytes;
  std::vector<std::int64_t> lengths;
  if (!by_bytes) lengths = path_lengths(successors);
  std::optional<LiveBytes> live;
  if (by_bytes) live.emplace(graph);
  Ready ready(size);
  std::vector<bool> done(size, false);
  const auto insert = [&](OpId op) { ready.insert(op, live ? live->key(op) : -lengths[static_cast<std::size_t>(op)]); };
  for (OpId op = 0; op < graph.size(); ++op) {
    if (waiting[static_cast<std::size_t>(op)] == 0) insert(op);
  }
  Order order;
  order.reserve(size);
  while (order.size() < size) {
    const OpId op = ready.take();
    order.push_back(op);
    done[static_cast<std::size_t>(op)] = true;
    if (live) live->emitted(op, done, ready);
    for (const OpId next : successors.of(op)) {
      if (--waiting[static_cast<std::size_t>(next)] == 0) insert(next);
    }
  }
  return order;
}

Order topological_order(const Graph& graph, TieBreak tie_break) {
  return topological_order(graph, successors(graph), tie_break);
}

std::vector<Order> topological_orders(const Graph& graph, const OpEdges& successors) {
  constexpr std::int64_t kLarge = 10'000;
  std::vector<Order> orders;
  for (const TieBreak tie :
       {TieBreak::depth_first, TieBreak::last_branch_first, TieBreak::fewest_live_bytes, TieBreak::longest_path}) {
    if (tie == TieBreak::last_branch_first && graph.size() > kLarge) continue;
    Order order = topological_order(graph, successors, tie);
    if (std::find(orders.begin(), orders.end(), order) == orders.end()) orders.push_back(std::move(order));
  }
  return orders;
}

std::vector<Order> topological_orders(const Graph& graph) { return topological_orders(graph, successors(graph)); }

}  // namespace millrace::partitioners
