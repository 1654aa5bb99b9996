// Steps every column through its order as far as it can go.
#include <algorithm>
#include <deque>
#include <limits>

#include "schedules/common/list_schedule.h"

namespace millrace::schedules {
namespace {

constexpr double kNotYet = -1;

class Execution {
 public:
  Execution(const Columns& columns, const StageDag& dag) : columns_(columns), dag_(dag) {
    for (const std::int64_t m : columns.micro_batches) {
      forward_end_.emplace_back(static_cast<std::size_t>(m), kNotYet);
      input_end_.emplace_back(static_cast<std::size_t>(m), kNotYet);
    }
  }

  std::optional<OrderTimes> run(const ColumnOrders& orders) {
    const std::size_t count = orders.size();
    std::vector<std::size_t> position(count, 0);
    std::vector<double> now(count, 0);
    std::vector<double> first(count, kNotYet);
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t c = 0; c < count; ++c) {
        while (position[c] < orders[c].size()) {
          const double ready = ready_of(orders[c][position[c]]);
          if (ready == kNotYet) break;
          const double start = std::max(now[c], ready);
          if (first[c] == kNotYet) first[c] = start;
          now[c] = start + finish(orders[c][position[c]++], start);
          moved = true;
        }
      }
    }
    OrderTimes times;
    for (std::size_t c = 0; c < count; ++c) {
      if (position[c] < orders[c].size()) return std::nullopt;
      const double span = now[c] - std::max(0.0, first[c]);
      if (span > times.longest_span) times.longest = c;
      times.longest_span = std::max(times.longest_span, span);
      times.makespan = std::max(times.makespan, now[c]);
      times.spans += span;
    }
    return times;
  }

 private:
  double hop(std::size_t producer, std::size_t consumer) const {
    return columns_.column_of[producer] == columns_.column_of[consumer] ? 0 : columns_.costs[producer].hop;
  }

  double ready_of(const ComputeAction& action) const {
    const auto s = static_cast<std::size_t>(action.stage);
    const auto k = static_cast<std::size_t>(action.micro_batch);
    if (action.kind == ComputeKind::backward_weight) return input_end_[s][k];
    double ready = 0;
    if (action.kind == ComputeKind::forward) {
      for (const std::int32_t stage : dag_.predecessors[s]) {
        const auto before = static_cast<std::size_t>(stage);
        if (forward_end_[before][k] == kNotYet) return kNotYet;
        ready = std::max(ready, forward_end_[before][k] + hop(before, s));
      }
      return ready;
    }
    if (forward_end_[s][k] == kNotYet) return kNotYet;
    for (const std::int32_t stage : dag_.successors[s]) {
      const auto next = static_cast<std::size_t>(stage);
      if (input_end_[next][k] == kNotYet) return kNotYet;
      ready = std::max(ready, input_end_[next][k] + hop(s, next));
    }
    return ready;
  }

  // Notes the end and returns the length.
  double finish(const ComputeAction& action, double start) {
    const auto s = static_cast<std::size_t>(action.stage);
    const auto k = static_cast<std::size_t>(action.micro_batch);
    const StageCost& cost = columns_.costs[s];
    switch (action.kind) {
      case ComputeKind::forward:
        forward_end_[s][k] = start + cost.forward;
        return cost.forward;
      case ComputeKind::backward_input:
        input_end_[s][k] = start + cost.backward_input;
        return cost.backward_input;
      case ComputeKind::backward:
        input_end_[s][k] = start + cost.backward_input + cost.backward_weight;
        return cost.backward_input + cost.backward_weight;
      case ComputeKind::backward_weight:
        return cost.backward_weight;
      default:
        return 0;
    }
  }

  const Columns& columns_;
  const StageDag& dag_;
  std::vector<std::vector<double>> forward_end_;  // [stage][micro-batch]
  std::vector<std::vector<double>> input_end_;
};

}  // namespace

std::optional<OrderTimes> execute(const Columns& columns, const StageDag& dag, const ColumnOrders& orders) {
  return Execution(columns, dag).run(orders);
}

double peak_bytes(const Columns& columns, const std::vector<ComputeAction>& order) {
  double bytes = 0;
  double peak = 0;
  for (const ComputeAction& action : order) {
    const StageCost& cost = columns.costs[static_cast<std::size_t>(action.stage)];
    if (action.kind == ComputeKind::forward) peak = std::max(peak, bytes += cost.activations);
    if (action.kind == ComputeKind::backward) bytes -= cost.activations;
    if (action.kind == ComputeKind::backward_input) bytes -= cost.activations - cost.kept_for_weights;
    if (action.kind == ComputeKind::backward_weight) bytes -= cost.kept_for_weights;
  }
  return peak;
}

}  // namespace millrace::schedules
