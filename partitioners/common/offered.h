// Objectives of published planners are for the partitioners that search by their formulas; the others refuse them.
#pragma once

#include <optional>

#include "plan/plan_set.h"
#include "plan/problem.h"

namespace millrace::partitioners {

/// None where the problem's objective is one of this product's own. Else a refusal that names the partitioners that
/// search by that objective's formula: times and bytes of operators alone would be balanced by another.
std::optional<plan::PlanSet> refused_if_published(const plan::Problem& problem);

}  // namespace millrace::partitioners
