// Lane by lane: warm-up, pairs with the weight gradients that are due, the rest. METHODS 2.
#include "schedules/common/zero_bubble.h"

#include <algorithm>

#include "schedules/common/plan_rules.h"

namespace millrace::schedules {

ComputeOrder zb_h1_order(const Plan& plan, const StageDag& dag) {
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

ComputeOrder zb_h2_order(const Plan& plan, const StageDag& dag) {
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
