// Time and memory of any segment of an order on any consecutive devices of a pipeline, in O(1) by prefix sums.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "partitioners/common/segments.h"
#include "plan/closed_form.h"
#include "plan/problem.h"

namespace millrace::partitioners {

/// Seconds of one micro-batch on a stage, transfers included, as plan::plan_times counts them.
struct StageCost {
  double forward = 0;
  double backward = 0;
  double total() const { return forward + backward; }
};

/// All pipelines are cut alike: where their devices differ, the slowest counts. Replicas share rows by speed.
/// Transfers are priced at the link from the device before the stage's first; the evaluator prices each pair.
class PipelineModel {
 public:
  PipelineModel(const plan::Problem& problem, const Order& order, const SegmentTable& table, int pipelines);

  int devices() const { return devices_; }
  std::size_t items() const { return items_; }
  const plan::ScheduleTraits& traits() const { return *traits_; }
  std::int64_t micro_batches() const { return micro_batches_; }
  bool memory_limited() const { return memory_limited_; }
  /// Seconds below which no bottleneck can be: all work on all devices with no loss.
  double least_bottleneck() const { return least_bottleneck_; }

  /// Compute time of items [begin, end) on devices first … first + replicas − 1; does not fall as the segment grows.
  double compute(int first, int replicas, std::size_t begin, std::size_t end) const {
    double slowest = 0;
    for (const std::size_t p : group(first, replicas).profiles) {
      slowest = std::max(slowest, profiles_[p].total[end] - profiles_[p].total[begin]);
    }
    return slowest;
  }

  StageCost cost(int first, int replicas, std::size_t begin, std::size_t end) const;

  /// Seconds to sum the segment's gradients over its replicas in all pipelines.
  double reduction(int first, int replicas, std::size_t begin, std::size_t end) const;

  /// Whether the segment with `live` micro-batches fits on each of the devices, `margin` bytes left free.
  bool fits(int first, int replicas, std::size_t begin, std::size_t end, std::int64_t live, double margin) const;

 private:
  struct Profile {  // prefix sums at the cut points
    int kind = 0;
    std::int64_t rows = 0;
    std::vector<double> forward, total;
  };
  struct Room {
    double rows = 0;
    double bytes = 0;
  };
  struct Group {
    std::vector<std::size_t> profiles;
    double most_rows = 0;
    std::vector<Room> rooms;  // of devices with a limit
    double latency = 0;
    double seconds_per_byte = 0;
    std::vector<double> reduction;  // seconds for kReductionUnit · 2^i bytes
  };
  static constexpr double kReductionUnit = 1024;

  const Group& group(int first, int replicas) const {
    return groups_[static_cast<std::size_t>(first * devices_ + replicas - 1)];
  }
  Group make_group(const plan::Problem& problem, const Order& order, int pipelines, int first, int replicas);
  std::size_t profile(const plan::Problem& problem, const Order& order, int device, std::int64_t rows);
  void sample_reduction(Group& group, const plan::Problem& problem, int pipelines, int first, int replicas) const;
  double gradient_bytes(std::size_t begin, std::size_t end) const;

  const SegmentTable* table_;
  const plan::ScheduleTraits* traits_;
  std::int64_t micro_batches_;
  plan::TrainingBytes sizes_;
  std::size_t items_;
  int devices_;
  std::vector<int> kinds_;      // of each device of the cluster: the first device that equals it
  std::vector<double> speeds_;
  std::vector<Profile> profiles_;
  std::vector<Group> groups_;   // [first][replicas − 1]
  bool memory_limited_ = false;
  double least_bottleneck_ = 0;
};

}  // namespace millrace::partitioners
