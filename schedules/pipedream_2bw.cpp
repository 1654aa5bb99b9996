// Gradients of an iteration are gathered while the next one has begun; both use the weights that they started with.
#include "schedules/pipedream_2bw.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/errors.h"
#include "schedules/common/plan_rules.h"

namespace millrace::schedules {

ComputeOrder pipedream_2bw(const Plan& plan, const StageDag& dag, const StageCosts&, const config::Values&) {
  require_alike_pipelines(plan, "pipedream-2bw");
  require_one_stage_a_device(plan, "pipedream-2bw");
  ComputeOrder order(plan);
  for (int p = 0; p < static_cast<int>(plan.pipelines.size()); ++p) {
    const std::int64_t m = plan.pipelines[static_cast<std::size_t>(p)].micro_batches;
    const std::vector<std::int64_t> warmup = warmups(plan, p, dag, "pipedream-2bw", std::int64_t{1} << 30);
    const std::int64_t most = *std::max_element(warmup.begin(), warmup.end());
    if (most >= m) {
      throw InvalidInput(
          fmt::format("schedule pipedream-2bw keeps two versions of the weights: it needs more "
                      "micro-batches than the deepest warm-up (m >= p), here {} micro-batches and "
                      "warm-up {}",
                      m, most));
    }
    for (std::size_t s = 0; s < warmup.size(); ++s) {
      ComputeOrder::Lane lane = order.lane({p, static_cast<int>(s)});
      for (std::int64_t k = 0; k < m; ++k) {
        const std::int64_t lag = k >= warmup[s] ? 0 : 1;
        const std::int64_t back = k - warmup[s] + lag * m;
        // A stash is named after its iteration's first micro-batch. Before it is made the newest weights are the same.
        if (lag == 0) lane.add(ComputeKind::load_weights, 0);
        lane.forward(k);
        lane.add(ComputeKind::load_weights, 0, lag).add(ComputeKind::backward, back, lag);
        if (back < m - 1) continue;
        // The weights before this update are those of the next iteration.
        lane.add(ComputeKind::drop_stash, 0, lag).add(ComputeKind::stash_weights, 0, lag - 1);
        lane.add(ComputeKind::update, back, lag);
      }
    }
  }
  return order;
}

}  // namespace millrace::schedules
