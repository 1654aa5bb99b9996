// One row for each schedule that does not flush.
#include "plan/kept_weights.h"

namespace millrace::plan {

std::int64_t weight_copies(std::string_view schedule, std::int64_t live) {
  if (schedule == "pipedream") return live - 1;  // an update a micro-batch: each that waits has weights of its own
  if (schedule == "pipedream-2bw") return 1;     // an update an iteration, and the weights before it
  return 0;
}

}  // namespace millrace::plan
