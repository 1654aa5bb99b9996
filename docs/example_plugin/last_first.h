// A schedule: all forwards, then the backwards from the last micro-batch on.
#pragma once

#include "config/values.h"
#include "program/compute_order.h"
#include "program/stage_dag.h"

namespace example {

millrace::ComputeOrder last_first(const millrace::Plan& plan, const millrace::StageDag& dag,
                                  const millrace::StageCosts& costs, const millrace::config::Values& options);

}  // namespace example
