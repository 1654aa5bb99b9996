// The objective max_load.
#include "base/errors.h"
#include "plan/published.h"

namespace millrace::plan {

Judgement judge_max_load(const Plan&, const Problem&) { throw InvalidInput("objective max_load: not built"); }

double bound_max_load(const Problem&) { return 0; }

}  // namespace millrace::plan
