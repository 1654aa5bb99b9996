// 1F1B: warm-up forwards, then alternate, then drain. METHODS 2.
#include "schedules/one_f_one_b.h"

#include "schedules/common/alternating.h"

namespace millrace::schedules {

ComputeOrder one_f_one_b(const Plan& plan, const StageDag& dag, const StageCosts&, const config::Values&) {
  return alternating(plan, dag, "1f1b");
}

}  // namespace millrace::schedules
