// Stage by stage: w forwards, m − w pairs, w backwards.
#include "schedules/common/alternate.h"

#include "schedules/common/plan_rules.h"

namespace millrace::schedules {

ComputeOrder alternate(const Plan& plan, const StageDag& dag, std::string_view schedule) {
  require_one_stage_a_device(plan, schedule);
  ComputeOrder order(plan);
  for (int p = 0; p < static_cast<int>(plan.pipelines.size()); ++p) {
    const std::int64_t m = plan.pipelines[static_cast<std::size_t>(p)].micro_batches;
    const std::vector<std::int64_t> warmup = warmups(plan, p, dag, schedule, m - 1);
    for (std::size_t s = 0; s < warmup.size(); ++s) {
      ComputeOrder::Lane lane = order.lane({p, static_cast<int>(s)});
      for (std::int64_t k = 0; k < warmup[s]; ++k) lane.forward(k);
      for (std::int64_t k = warmup[s]; k < m; ++k) lane.forward(k).backward(k - warmup[s]);
      for (std::int64_t k = m - warmup[s]; k < m; ++k) lane.backward(k);
    }
  }
  return order;
}

}  // namespace millrace::schedules
