// Hands the plan to the list scheduler. METHODS 2.
#include "schedules/zb_greedy.h"

#include "schedules/common/best_list.h"
#include "schedules/common/plan_rules.h"

namespace millrace::schedules {

config::Options zb_greedy_options() {
  return {{"objective", "what is made short: an iteration in steady state, or one alone",
           config::OneOf{{"span", "makespan"}}, "span"},
          {"moves", "single moves tried on the best order; 0 is quick, for searches", config::Integer{0, 1'000'000},
           "40000"},
          list_rules_option()};
}

ComputeOrder zb_greedy(const Plan& plan, const StageDag& dag, const StageCosts& costs, const config::Values& options) {
  require_no_warmup(plan, "zb-greedy");
  const ListObjective objective = options.text("objective") == "span" ? ListObjective::span : ListObjective::makespan;
  return to_compute_order(plan, best_list_order(make_columns(plan, costs, "zb-greedy"), dag, objective, "zb-greedy",

                                                {static_cast<std::uint64_t>(options.integer("moves")),
                                                 static_cast<std::size_t>(options.integer("rules"))}));
}

}  // namespace millrace::schedules
