// The placement is checked, the limit set, the order left to list scheduling. METHODS 2.
#include "schedules/zb_v.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/errors.h"
#include "schedules/common/best_list.h"
#include "schedules/common/plan_rules.h"

namespace millrace::schedules {

ComputeOrder zb_v(const Plan& plan, const StageDag& dag, const StageCosts& costs, const config::Values&) {
  require_no_warmup(plan, "zb-v");
  Columns columns = make_columns(plan, costs, "zb-v");
  for (std::size_t n = 0; n < plan.pipelines.size(); ++n) {
    const std::vector<Stage>& stages = plan.pipelines[n].stages;
    const auto first = static_cast<std::size_t>(flat_index(plan, {static_cast<int>(n), 0}));
    for (std::size_t s = 0; s < stages.size(); ++s) {
      Column& column = columns.columns[static_cast<std::size_t>(columns.column_of[first + s])];
      const bool paired = stages.size() % 2 == 0 && stages[s].devices == stages[stages.size() - 1 - s].devices;
      if (!paired || column.stages.size() != 2) {
        throw InvalidInput(fmt::format(
            "schedule zb-v places stages s and 2p - 1 - s on one device each, and nothing else there; stage "
            "{} of the {} of pipeline {} is not placed so",
            s, stages.size(), n));
      }
      const double pair =
          columns.costs[first + s].activations + columns.costs[first + stages.size() - 1 - s].activations;
      column.limit = std::min(column.limit, static_cast<double>(stages.size() / 2) * pair);
    }
  }
  return to_compute_order(plan, best_list_order(columns, dag, ListObjective::span, "zb-v"));
}

}  // namespace millrace::schedules
