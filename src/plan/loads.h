// How much each device computes for one micro-batch: where stages share devices, a device and no stage is the
// bottleneck.
#pragma once

#include <vector>

#include "plan/stage_times.h"

namespace millrace::plan {

/// Seconds of the first replica of each stage; where pipelines have different numbers of micro-batches, a part of
/// `micro_batches`.
class Loads {
 public:
  Loads(const Plan& plan, const PlanTimes& times, int devices, std::int64_t micro_batches);

  bool shared() const { return shared_; }  ///< a device holds several stages
  Seconds of(int device) const { return seconds_[static_cast<std::size_t>(device)]; }
  Seconds most() const { return most_; }
  Seconds mean() const { return mean_; }  ///< of devices that stand first in their stages
  int devices() const { return used_; }   ///< that hold a stage

 private:
  std::vector<Seconds> seconds_;
  Seconds most_{}, mean_{};
  int used_ = 0;
  bool shared_ = false;
};

}  // namespace millrace::plan
