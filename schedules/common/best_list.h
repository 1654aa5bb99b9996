// The best order of several list-scheduling rules, improved by exchanges: what zb-greedy and zb-v return.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "config/option.h"
#include "program/compute_order.h"
#include "program/stage_dag.h"
#include "schedules/common/columns.h"
#include "schedules/common/list_schedule.h"

namespace millrace::schedules {

enum class ListObjective { span, makespan };

/// How long is looked for a better order.
struct ListEffort {
  std::uint64_t moves = 0;
  std::size_t rules = 1000;  ///< the most promising ones
};

/// The option `rules` of schedules that return such an order.
config::Option list_rules_option();

/// Tries the rules, keeps the order with the least longest span (or makespan), at a tie the least sum of spans, and
/// tries `moves` single actions of it up to three places away, keeping what is not worse: a pure function. Programs of
/// many actions get fewer rules and no moves. `known` orders compete with those of the rules where they keep the
/// limits. \throws InvalidInput  when no rule ends under the memory limits, naming the device and what it needs at
/// least.
ColumnOrders best_list_order(const Columns& columns, const StageDag& dag, ListObjective objective,
                             std::string_view schedule, ListEffort effort, const std::vector<ColumnOrders>& known = {});

/// Writes the orders of all columns to the lanes of their stages.
ComputeOrder to_compute_order(const Plan& plan, const ColumnOrders& orders);

}  // namespace millrace::schedules
