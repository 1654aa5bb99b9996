// What a schedule says to a plan before anything is computed for it: the rule that the plan breaks, or nothing.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "config/values.h"
#include "plan/plan.h"

namespace millrace::planner {

/// The schedule's own refusal of the plan's placement, micro-batches and warm-ups, as if its stages were a chain;
/// empty: none. Schedules that fit their order to costs have no rule but their placement, and are not asked.
std::string broken_rule(const Plan& plan);

/// The plan with the quick options of a schedule that searches for its order (`moves`, `rules`), where the plan does
/// not give them: for searches over many plans.
Plan with_quick_order(const Plan& plan);

/// Takes these options away again, but for those that `given` had.
void forget_quick_order(Plan& plan, const std::map<std::string, std::string>& given);

/// The plan with each fixed order that its schedule can follow in place of the one that it searches for, by name; none
/// where the plan says which.
std::vector<std::pair<std::string, Plan>> with_fixed_orders(const Plan& plan);

/// Last micro-batches whose weight gradients the plan defers (program/deferred_weights.h).
std::int64_t deferred_weights(const Plan& plan);

/// The plan with each of these numbers of them in place of its own, by name; none where its schedule does not flush.
std::vector<std::pair<std::string, Plan>> with_deferred_weights(const Plan& plan,
                                                                const std::vector<std::int64_t>& counts);

/// Options of a registry row that differ from their defaults, as a plan holds them.
std::map<std::string, std::string> written_options(const std::string& schedule, const config::Values& options);

}  // namespace millrace::planner
