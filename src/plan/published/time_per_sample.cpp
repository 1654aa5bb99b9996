// The objective time_per_sample.
#include "base/errors.h"
#include "plan/published.h"

namespace millrace::plan {

Judgement judge_time_per_sample(const Plan&, const Problem&) { throw InvalidInput("objective time_per_sample: not built"); }

double bound_time_per_sample(const Problem&) { return 0; }

}  // namespace millrace::plan
