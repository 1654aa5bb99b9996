// Goes through the rows once.
#include "tests/sim/spans.h"

#include <algorithm>
#include <limits>

namespace millrace::sim {

std::vector<double> spans(const Simulation& run) {
  std::vector<double> first(run.busy.size(), std::numeric_limits<double>::infinity()), last(run.busy.size(), 0);
  for (const TimelineRow& row : run.timeline.rows) {
    const bool computes = row.end > row.start && row.instruction.micro_batch >= 0 && row.instruction.transfer < 0;
    if (!computes) continue;
    const auto rank = static_cast<std::size_t>(row.rank);
    first[rank] = std::min(first[rank], row.start.value());
    last[rank] = std::max(last[rank], row.end.value());
  }
  for (std::size_t r = 0; r < last.size(); ++r) last[r] -= first[r];
  return last;
}

std::vector<double> ends_of_iterations(const Simulation& run) {
  std::vector<double> ends;
  for (const TimelineRow& row : run.timeline.rows) {
    const auto iteration = static_cast<std::size_t>(row.iteration);
    if (ends.size() <= iteration) ends.resize(iteration + 1, 0);
    ends[iteration] = std::max(ends[iteration], row.end.value());
  }
  return ends;
}

}  // namespace millrace::sim
