// List scheduling of forwards, input gradients and weight gradients in simulated time, under a memory limit.
#pragma once

#include <optional>
#include <vector>

#include "program/compute_order.h"
#include "program/stage_dag.h"
#include "schedules/common/columns.h"

namespace millrace::schedules {

/// How a device that is free chooses among what it could compute.
struct ListRule {
  enum class Prefer { backward, alternate, wait_for_backward };
  Prefer prefer = Prefer::backward;
  /// Forwards before the first backward of a device with one stage: as many as fit into the time until its first
  /// gradient can be back, times `warmup`, and `more_warmup`. Never fewer than 1f1b has. Devices with several stages
  /// are bounded by memory alone.
  double warmup = 1;
  double more_warmup = 0;
  /// A weight gradient fills a wait of at least this many times its own length (or any wait that has no known end).
  double gap = 0;
  /// Of several stages of a device that could start at once: the deeper one, else the one nearer to the input.
  bool deeper_forward = true;
  bool deeper_backward = true;
};

/// Actions of each column, in order.
using ColumnOrders = std::vector<std::vector<ComputeAction>>;

/// Empty when the rule comes to a stop: the limit is too small for what it began.
std::optional<ColumnOrders> list_schedule(const Columns& columns, const StageDag& dag, const ListRule& rule);

/// What an order costs: the longest span of one column from its first start to its last end (the next iteration absorbs
/// the skew between columns, METHODS 2), then the makespan, then the sum of spans.
struct OrderTimes {
  double longest_span = 0;
  double makespan = 0;
  double spans = 0;
  std::size_t longest = 0;  ///< the column with the longest span
};

/// Executes the orders: a column waits for its inputs, a hop delays what crosses columns, nothing else costs.
/// Empty when they deadlock.
std::optional<OrderTimes> execute(const Columns& columns, const StageDag& dag, const ColumnOrders& orders);

/// Most activation bytes of a column at once. A forward adds, a backward_input leaves kept_for_weights, a
/// backward_weight frees the rest.
double peak_bytes(const Columns& columns, const std::vector<ComputeAction>& order);

}  // namespace millrace::schedules
