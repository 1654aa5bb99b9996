// Time, memory and traffic of any segment of an order on any devices of a pipeline, as plan::plan_times and
// plan::AnalyticBytes count them, in O(1) from sums along the order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "partitioners/common/device_deal.h"
#include "partitioners/common/op_times.h"
#include "partitioners/common/segments.h"
#include "plan/closed_form.h"
#include "plan/problem.h"

namespace millrace::partitioners {

/// Seconds of one micro-batch on a stage, transfers included.
struct StageCost {
  double forward = 0;
  double backward = 0;
  double total() const { return forward + backward; }
};

/// How the devices' memory limits what fits, and whether transfers take time of a stage.
struct CutRules {
  bool limited = true;                                   ///< by each device's own limit
  double cap = std::numeric_limits<double>::infinity();  ///< bytes of any device
  double margin = 0;                                     ///< bytes that every device keeps free
  bool hidden_transfers = false;                         ///< they overlap with computation, and take none
};

/// All pipelines are cut alike: where their devices differ, the slowest counts. Replicas share rows by speed.
/// Transfers are priced at the link from the stage before; where that stage's devices are not known, at the fastest.
class PipelineModel {
 public:
  /// All that is given must outlive the model.
  PipelineModel(const plan::Problem& problem, const Segments& segments, const DeviceDeal& deal, OpTimes& times,
                TimeSums& sums, std::span<const double> speeds, CutRules rules);

  const plan::Problem& problem() const { return *problem_; }
  const DeviceDeal& deal() const { return *deal_; }
  const Segments& segments() const { return *segments_; }
  std::size_t items() const { return items_; }
  int devices() const { return devices_; }  ///< of a pipeline
  std::int64_t most_stages() const { return problem_->stages.value_or(devices_); }
  const plan::ScheduleTraits& traits() const { return *traits_; }
  std::int64_t micro_batches() const { return problem_->micro_batches; }
  std::int64_t rows() const { return rows_; }  ///< of a micro-batch
  bool memory_limited() const { return memory_limited_; }

  /// Devices that a stage takes when the stages after it have `behind`; equal ones have the same number.
  int group(const Counts& behind, const Counts& taken);

  /// Items [begin, end) on the group; `recompute`: with all operators run again before their backward.
  StageCost cost(int group, std::size_t begin, std::size_t end, bool recompute = false) const {
    const Group& on = groups_[static_cast<std::size_t>(group)];
    double slowest = -1, forward = 0;
    for (const Profile& profile : on.profiles) {
      const double once = profile.scale * (profile.sums->forward[end] - profile.sums->forward[begin]);
      double total = profile.scale * (profile.sums->total[end] - profile.sums->total[begin]);
      if (recompute) total += once;
      if (total <= slowest) continue;
      slowest = total;
      forward = once;
    }
    const double transfer = receive(on, begin, end);
    return {forward + transfer, slowest - forward + transfer};
  }

  /// Seconds that the segment waits for what it receives of one micro-batch; gradients going back take as long again.
  double receive(int group, std::size_t begin, std::size_t end) const {
    return receive(groups_[static_cast<std::size_t>(group)], begin, end);
  }

  /// Compute of the items before each cut point on the group (on the profile that is slowest over all of them).
  std::vector<double> compute_sums(int group, bool recompute) const;
  std::vector<double> forward_sums(int group) const;

  /// Seconds to sum the segment's gradients over its replicas in all pipelines.
  double reduction(int group, std::size_t begin, std::size_t end) const;

  /// Bytes put on the network in an iteration: for activations and their gradients, to sum parameters' gradients, and
  /// both.
  double activation_traffic(std::size_t begin, std::size_t end) const {
    return 2 * segments_->received(begin, end)[0] * static_cast<double>(rows_ * micro_batches() * deal_->pipelines());
  }
  double reduction_traffic(int group, std::size_t begin, std::size_t end) const {
    const auto owners = static_cast<double>(groups_[static_cast<std::size_t>(group)].owners.size());
    return 2 * (owners - 1) * segments_->gradient_bytes(begin, end);
  }
  double injected(int group, std::size_t begin, std::size_t end) const {
    return activation_traffic(begin, end) + reduction_traffic(group, begin, end);
  }

  /// Most live micro-batches with which the segment fits on each device of the group; −1: none. Large where there is no
  /// limit.
  std::int64_t most_live(int group, std::size_t begin, std::size_t end, bool recompute) const;

  /// No cut does items [0, end) on the devices that are left in less time, summed over its stages or on the slowest.
  double least_time(const Counts& left, std::size_t end) const {
    double rate = 0;
    for (std::size_t q = 0; q < left.size(); ++q) rate += left[q] * strength_[q];
    return rate > 0 ? least_work_[end] / rate : std::numeric_limits<double>::infinity();
  }

 private:
  struct Profile {
    const TimeSums::Sums* sums = nullptr;
    double scale = 1;
    bool operator==(const Profile&) const = default;
  };
  struct Room {
    double rows = 0;
    double bytes = 0;
    bool operator==(const Room&) const = default;
  };
  struct Group {
    std::vector<Profile> profiles;
    double most_rows = 0;
    std::vector<Room> rooms;  // of devices with a limit
    double latency = 0;
    double seconds_per_byte = 0;
    std::vector<int> owners;                // in all pipelines
    mutable std::vector<double> reduction;  // seconds for kReductionUnit · 4^i bytes; below 0: not asked yet
  };
  static constexpr double kReductionUnit = 1024;

  double receive(const Group& on, std::size_t begin, std::size_t end) const {
    if (rules_.hidden_transfers) return 0;
    const auto& received = segments_->received(begin, end);
    return received[1] * on.latency + received[0] * on.most_rows * on.seconds_per_byte;
  }
  Profile profile(int device, std::int64_t rows);
  void bound_work();
  std::vector<int> signature(const Counts& behind, const Counts& taken) const;
  Group make_group(const Counts& behind, const Counts& taken);
  void link(Group& group, const Counts& behind, const Counts& taken) const;
  double sample(const Group& group, std::size_t step) const;
  const Profile& slowest(int group) const;

  const plan::Problem* problem_;
  const Segments* segments_;
  const DeviceDeal* deal_;
  OpTimes* times_;
  TimeSums* sums_;
  std::span<const double> speeds_;
  CutRules rules_;
  const plan::ScheduleTraits* traits_;
  std::size_t items_;
  int devices_;
  std::int64_t rows_;
  bool memory_limited_ = false;
  bool exact_reductions_;           // asked each time rather than read between samples
  std::vector<double> least_work_;  // at the cut points: every operator on the device that is best for it
  std::vector<double> strength_;    // by queue: the best that one of its devices does on any operator, against the best
  std::map<std::vector<int>, int> group_numbers_;
  std::vector<Group> groups_;
};

}  // namespace millrace::partitioners
