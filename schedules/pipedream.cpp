// In every round the forward of one micro-batch meets the backward of the one that is a warm-up behind it.
#include "schedules/pipedream.h"

#include "schedules/common/plan_rules.h"

namespace millrace::schedules {

ComputeOrder pipedream(const Plan& plan, const StageDag& dag, const StageCosts&, const config::Values&) {
  require_alike_pipelines(plan, "pipedream");
  require_one_stage_a_device(plan, "pipedream");
  ComputeOrder order(plan);
  for (int p = 0; p < static_cast<int>(plan.pipelines.size()); ++p) {
    const std::int64_t m = plan.pipelines[static_cast<std::size_t>(p)].micro_batches;
    const std::vector<std::int64_t> warmup = warmups(plan, p, dag, "pipedream", std::int64_t{1} << 30);
    for (std::size_t s = 0; s < warmup.size(); ++s) {
      ComputeOrder::Lane lane = order.lane({p, static_cast<int>(s)});
      const bool stashes = warmup[s] > 0;  // else nothing happens between a forward and its backward
      for (std::int64_t k = 0; k < m; ++k) {
        const std::int64_t lag = k >= warmup[s] ? 0 : (warmup[s] - k + m - 1) / m;
        const std::int64_t back = k - warmup[s] + lag * m;
        lane.forward(k);
        if (stashes) lane.add(ComputeKind::stash_weights, k).add(ComputeKind::load_weights, back, lag);
        lane.add(ComputeKind::backward, back, lag);
        if (stashes) lane.add(ComputeKind::drop_stash, back, lag);
        lane.add(ComputeKind::update, back, lag);
      }
    }
  }
  return order;
}

}  // namespace millrace::schedules
