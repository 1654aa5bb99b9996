// 1F1B is the common alternating order. METHODS 2.
#include "schedules/one_f_one_b.h"

#include "schedules/common/alternate.h"

namespace millrace::schedules {

ComputeOrder one_f_one_b(const Plan& plan, const StageDag& dag, const StageCosts&, const config::Values&) {
  return alternate(plan, dag, "1f1b");
}

}  // namespace millrace::schedules
