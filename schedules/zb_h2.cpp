// Twice the warm-up, in the order that zb-greedy competes with.
#include "schedules/zb_h2.h"

#include "schedules/common/plan_rules.h"
#include "schedules/common/zero_bubble.h"

namespace millrace::schedules {

ComputeOrder zb_h2(const Plan& plan, const StageDag& dag, const StageCosts&, const config::Values&) {
  require_one_stage_a_device(plan, "zb-h2");
  require_no_warmup(plan, "zb-h2");
  return zb_h2_order(plan, dag);
}

}  // namespace millrace::schedules
