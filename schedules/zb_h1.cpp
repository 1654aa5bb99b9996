// 1F1B on forwards and input gradients; the weight gradients follow late enough to fill the drain, not the memory.
#include "schedules/zb_h1.h"

#include <algorithm>

#include "schedules/common/plan_rules.h"

namespace millrace::schedules {

ComputeOrder zb_h1(const Plan& plan, const StageDag& dag, const StageCosts&, const config::Values&) {
  require_one_stage_a_device(plan, "zb-h1");
  ComputeOrder order(plan);
  for (int p = 0; p < static_cast<int>(plan.pipelines.size()); ++p) {
    const std::int64_t m = plan.pipelines[static_cast<std::size_t>(p)].micro_batches;
    // Not cut at m − 1 here: the delay of weight gradients is the difference of whole warm-ups.
    const std::vector<std::int64_t> warmup = warmups(plan, p, dag, "zb-h1", std::int64_t{1} << 30);
    const std::int64_t most = *std::max_element(warmup.begin(), warmup.end());
    for (std::size_t s = 0; s < warmup.size(); ++s) {
      ComputeOrder::Lane lane = order.lane({p, static_cast<int>(s)});
      const std::int64_t w = std::min(warmup[s], m - 1);
      const std::int64_t delay = most - warmup[s];
      for (std::int64_t k = 0; k < w; ++k) lane.forward(k);
      for (std::int64_t k = 0; k < m; ++k) {
        if (k + w < m) lane.forward(k + w);
        lane.backward_input(k);
        if (k >= delay) lane.backward_weight(k - delay);
      }
      for (std::int64_t k = std::max<std::int64_t>(0, m - delay); k < m; ++k) lane.backward_weight(k);
    }
  }
  return order;
}

}  // namespace millrace::schedules
