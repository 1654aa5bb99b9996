// The dynamic program over items and devices (METHODS 6, `dp`): the least Σc under a bound on the bottleneck.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "partitioners/common/pipeline_model.h"

namespace millrace::partitioners {

/// When to stop.
using Deadline = std::chrono::steady_clock::time_point;

/// Cuts and replicas of one pipeline.
struct PipelineCut {
  std::vector<std::size_t> ends;  ///< items before the end of each stage
  std::vector<int> replicas;
  double sum = 0;             ///< Σc + what of the reduction is exposed
  double slowest = 0;         ///< max c
  double slowest_forward = 0;
  double slowest_backward = 0;

  /// Iteration time of the schedule, by closed form.
  double iteration_time(const plan::ScheduleTraits& traits, std::int64_t micro_batches) const {
    const double steady = traits.splits_bottleneck ? slowest_forward + slowest_backward : slowest;
    return sum + static_cast<double>(micro_batches - 1) * steady;
  }
};

class PipelineDp {
 public:
  /// `stages`: exactly so many; none: any number. `margin`: bytes that every device keeps free.
  PipelineDp(const PipelineModel& model, std::optional<int> stages, double margin);

  /// States per item and device: how many numbers of later stages are told apart.
  static std::int64_t depth(const PipelineModel& model, std::optional<int> stages);

  /// All items in one stage on all devices; none where that does not fit or another number of stages is asked for.
  std::optional<PipelineCut> one_stage() const;

  /// The cut of least Σc + exposed reduction with c ≤ `bottleneck` in every stage; all devices are used. Exact where
  /// nothing is reduced; else each state keeps its best suffix. None: there is no such cut, or the deadline passed.
  std::optional<PipelineCut> solve(double bottleneck, Deadline deadline);

 private:
  struct State {
    double sum = 0;
    double tail = 0;  ///< reduction that is exposed behind the suffix's last backward
    std::int32_t end = 0;
    std::int16_t replicas = 0;
    std::int16_t depth = 0;
    double value() const { return sum + tail; }
  };

  State& state(std::int64_t depth, int devices, std::size_t begin) {
    return states_[(static_cast<std::size_t>(depth - 1) * static_cast<std::size_t>(model_->devices() + 1) +
                    static_cast<std::size_t>(devices)) * model_->items() + begin];
  }
  void extend(int devices, int replicas, std::size_t begin, double bottleneck);
  void consider(int devices, int replicas, std::size_t begin, std::size_t end, double bottleneck);
  void offer(std::int64_t depth, int devices, int replicas, std::size_t begin, std::size_t end, const StageCost& cost,
             const State& behind, std::int64_t behind_depth);
  PipelineCut trace(std::int64_t depth);

  const PipelineModel* model_;
  std::optional<int> stages_;
  double margin_;
  std::int64_t depth_;
  std::vector<State> states_;
};

}  // namespace millrace::partitioners
