// Why a plan takes as long as it does, in words and in numbers that can be checked by hand (METHODS 2, REPORTS M04
// P16).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "graph/graph.h"
#include "plan/report.h"
#include "planner/tables.h"

namespace millrace::planner {

/// "bottleneck: n3 (…)": the operator that limits the plan, its stage and its part of the stage's time.
std::string bottleneck_line(const plan::PlanReport& report);

/// "search: dp, order cluster, complete in 12.10 ms; found the best of all plans: 24 s".
std::string search_line(const plan::PlanReport& report);

/// "bound: 24 s (work / speed); gap 37.5 %".
std::string bound_line(const plan::PlanReport& report);

/// The closed form of the iteration time with the numbers filled in, and that of the objective where it is another.
/// Empty for times that no closed form gave.
std::vector<std::string> arithmetic(const plan::PlanReport& report);

/// What went into the figures: graph, batch, every kind of device and link, in base units.
Table inputs_table(const Graph& graph, const cluster::Cluster& cluster, std::int64_t batch, std::int64_t bytes_per_real,
                   const std::optional<Bytes>& memory_limit);

/// "2.5e10": the shortest text of the number, with an exponent where it is long.
std::string shortest(double value);

}  // namespace millrace::planner
