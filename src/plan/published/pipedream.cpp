// The objective pipedream.
#include "base/errors.h"
#include "plan/published.h"

namespace millrace::plan {

Judgement judge_pipedream(const Plan&, const Problem&) { throw InvalidInput("objective pipedream: not built"); }

double bound_pipedream(const Problem&) { return 0; }

}  // namespace millrace::plan
