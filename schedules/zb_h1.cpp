// 1F1B on forwards and input gradients, in the order that zb-greedy competes with.
#include "schedules/zb_h1.h"

#include "schedules/common/plan_rules.h"
#include "schedules/common/zero_bubble.h"

namespace millrace::schedules {

ComputeOrder zb_h1(const Plan& plan, const StageDag& dag, const StageCosts&, const config::Values&) {
  require_one_stage_a_device(plan, "zb-h1");
  return zb_h1_order(plan, dag);
}

}  // namespace millrace::schedules
