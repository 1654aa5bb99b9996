// GPipe: F0 … Fm−1, then B0 … Bm−1 on every stage. METHODS 2.
#include "schedules/gpipe.h"

#include "schedules/common/plan_rules.h"

namespace millrace::schedules {

ComputeOrder gpipe(const Plan& plan, const StageDag&, const StageCosts&, const config::Values&) {
  require_one_stage_a_device(plan, "gpipe");
  require_no_warmup(plan, "gpipe");
  ComputeOrder order(plan);
  for (int p = 0; p < static_cast<int>(plan.pipelines.size()); ++p) {
    const Pipeline& pipeline = plan.pipelines[static_cast<std::size_t>(p)];
    for (int s = 0; s < static_cast<int>(pipeline.stages.size()); ++s) {
      ComputeOrder::Lane lane = order.lane({p, s});
      for (std::int64_t k = 0; k < pipeline.micro_batches; ++k) lane.forward(k);
      for (std::int64_t k = 0; k < pipeline.micro_batches; ++k) lane.backward(k);
    }
  }
  return order;
}

}  // namespace millrace::schedules
