// Adds up stages by device.
#include "plan/loads.h"

#include <algorithm>

namespace millrace::plan {

Loads::Loads(const Plan& plan, const PlanTimes& times, int devices, std::int64_t micro_batches)
    : seconds_(static_cast<std::size_t>(devices)) {
  std::vector<int> stages(static_cast<std::size_t>(devices), 0);
  Seconds sum;
  for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
    const Pipeline& pipeline = plan.pipelines[p];
    // Only stages that share devices add up; the loads of others are those of their own micro-batches.
    const double part = static_cast<double>(pipeline.micro_batches) / static_cast<double>(micro_batches);
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
      const Seconds own = times.stages[p][s].seconds().total() * part;
      for (const int device : pipeline.stages[s].devices) {
        const auto d = static_cast<std::size_t>(device);
        seconds_[d] += own;
        if (stages[d]++ > 0) shared_ = true;
      }
    }
  }
  int first = 0;
  std::vector<bool> counted(static_cast<std::size_t>(devices), false);
  for (const Pipeline& pipeline : plan.pipelines) {
    for (const Stage& stage : pipeline.stages) {
      const auto d = static_cast<std::size_t>(stage.devices.front());
      most_ = std::max(most_, seconds_[d]);
      if (counted[d]) continue;
      counted[d] = true;
      sum += seconds_[d];
      ++first;
    }
  }
  used_ = static_cast<int>(std::count_if(stages.begin(), stages.end(), [](int count) { return count > 0; }));
  if (first > 0) mean_ = sum / static_cast<double>(first);
}

}  // namespace millrace::plan
