// Plans, stages and refusals as tables of text, for the command line and the summary; nothing is printed here.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "planner/search.h"

namespace millrace::planner {

struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};

/// One row a plan, best first. Times of the closed forms are left out where a published formula judged.
Table plans_table(const std::vector<plan::Candidate>& plans);

/// One row a stage: operators, devices, times, bytes, memory; likewise.
Table stages_table(const plan::PlanReport& report, const Graph& graph);

/// One row a stage: where it is and how it spends an iteration, for `--explain`.
Table stage_details(const plan::PlanReport& report, const cluster::Cluster& cluster);

/// One row a stage: its memory by kind.
Table memory_table(const plan::PlanReport& report);

/// One row a refused shape.
Table refusals_table(const std::vector<plan::Refused>& refusals);

}  // namespace millrace::planner
