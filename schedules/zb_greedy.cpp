// Hands the plan to the list scheduler; fixed orders compete where they keep the limits. METHODS 2.
#include "schedules/zb_greedy.h"

#include <algorithm>
#include <utility>

#include "schedules/common/best_list.h"
#include "schedules/common/plan_rules.h"
#include "schedules/common/zero_bubble.h"
#include "schedules/registry.h"

namespace millrace::schedules {
namespace {

// Of every column.
ColumnOrders by_column(const Plan& plan, const Columns& columns, const ComputeOrder& order) {
  ColumnOrders orders;
  for (const Column& column : columns.columns) {
    const int device = stage_at(plan, column.stages.front()).devices.front();
    orders.push_back(order.ranks()[static_cast<std::size_t>(device)]);
  }
  return orders;
}

bool keeps_limits(const Columns& columns, const ColumnOrders& orders) {
  for (std::size_t c = 0; c < orders.size(); ++c) {
    if (peak_bytes(columns, orders[c]) > columns.columns[c].limit) return false;
  }
  return true;
}

double length(const Columns& columns, const StageDag& dag, const ColumnOrders& orders, ListObjective objective) {
  const OrderTimes times = execute(columns, dag, orders).value();
  return objective == ListObjective::span ? times.longest_span : times.makespan;
}

}  // namespace

config::Options zb_greedy_options() {
  return {
      {"objective", "what is made short: an iteration in steady state, or one alone",
       config::OneOf{{"span", "makespan"}}, "span"},
      {"moves", "single moves tried on the best order; 0 is quick, for searches", config::Integer{0, 1'000'000},
       "40000"},
      list_rules_option(),
      {kFixedOrder, "search, or the order of that schedule", config::OneOf{{"search", "zb-h1", "zb-h2"}}, "search"}};
}

ComputeOrder zb_greedy(const Plan& plan, const StageDag& dag, const StageCosts& costs, const config::Values& options) {
  require_no_warmup(plan, "zb-greedy");
  const std::string order = options.text(kFixedOrder);
  if (order != "search") {
    require_one_stage_a_device(plan, "zb-greedy with order " + order);
    return order == "zb-h1" ? zb_h1_order(plan, dag) : zb_h2_order(plan, dag);
  }
  const ListObjective objective = options.text("objective") == "span" ? ListObjective::span : ListObjective::makespan;
  const Columns columns = make_columns(plan, costs, "zb-greedy");
  ColumnOrders best = best_list_order(
      columns, dag, objective, "zb-greedy",
      {static_cast<std::uint64_t>(options.integer("moves")), static_cast<std::size_t>(options.integer("rules"))});
  const bool alone = std::all_of(columns.columns.begin(), columns.columns.end(),
                                 [](const Column& column) { return column.stages.size() == 1; });
  if (!alone) return to_compute_order(plan, best);
  for (const auto fixed : {zb_h1_order, zb_h2_order}) {
    ColumnOrders orders = by_column(plan, columns, fixed(plan, dag));
    if (keeps_limits(columns, orders) &&
        length(columns, dag, orders, objective) < length(columns, dag, best, objective)) {
      best = std::move(orders);
    }
  }
  return to_compute_order(plan, best);
}

}  // namespace millrace::schedules
