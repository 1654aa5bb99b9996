// The objective dapple.
#include "base/errors.h"
#include "plan/published.h"

namespace millrace::plan {

Judgement judge_dapple(const Plan&, const Problem&) { throw InvalidInput("objective dapple: not built"); }

double bound_dapple(const Problem&) { return 0; }

}  // namespace millrace::plan
