// Enough forwards to reach over the whole way to the last stage and back, then weight gradients fill what is left.
#include "schedules/zb_h2.h"

#include <algorithm>

#include "schedules/common/plan_rules.h"

namespace millrace::schedules {

ComputeOrder zb_h2(const Plan& plan, const StageDag& dag, const StageCosts&, const config::Values&) {
  require_one_stage_a_device(plan, "zb-h2");
  require_no_warmup(plan, "zb-h2");
  ComputeOrder order(plan);
  for (int p = 0; p < static_cast<int>(plan.pipelines.size()); ++p) {
    const Pipeline& pipeline = plan.pipelines[static_cast<std::size_t>(p)];
    const std::int64_t m = pipeline.micro_batches;
    const auto first = static_cast<std::size_t>(flat_index(plan, {p, 0}));
    const auto depth = [&](std::size_t s) { return std::int64_t{dag.depth_from_end[first + s]}; };
    std::int64_t deepest = 0;
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) deepest = std::max(deepest, depth(s));
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
      ComputeOrder::Lane lane = order.lane({p, static_cast<int>(s)});
      const std::int64_t w = std::min(m, 2 * depth(s) + 1);
      const std::int64_t delay = 2 * (deepest - depth(s));
      for (std::int64_t k = 0; k < w; ++k) lane.forward(k);
      for (std::int64_t k = 0; k < m; ++k) {
        lane.backward_input(k);
        if (k >= delay) lane.backward_weight(k - delay);
        if (k + w < m) lane.forward(k + w);
      }
      for (std::int64_t k = std::max<std::int64_t>(0, m - delay); k < m; ++k) lane.backward_weight(k);
    }
  }
  return order;
}

}  // namespace millrace::schedules
