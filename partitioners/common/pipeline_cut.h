// A cut of an order into the stages of a pipeline, its figures by the model, and how cuts are compared.
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <limits>
#include <vector>

#include "partitioners/common/pipeline_model.h"
#include "plan/objective.h"

namespace millrace::partitioners {

/// When to stop.
using Deadline = std::chrono::steady_clock::time_point;
inline bool late(Deadline deadline) { return std::chrono::steady_clock::now() > deadline; }

/// What stages of a pipeline, or a suffix of them, come to; seconds of one micro-batch.
struct CutFigures {
  double sum = 0;      ///< Σc
  double slowest = 0;  ///< max c
  double forward = 0;  ///< the slowest
  double backward = 0;
  double tail = 0;      ///< gradient reduction that is exposed behind the last backward
  double injected = 0;  ///< bytes of an iteration

  /// With one more stage in front, whose gradients take `reduction` to sum: the stages behind it end their last
  /// backward earlier by its own (METHODS 5, level 1).
  CutFigures before(const StageCost& cost, double reduction, double bytes) const {
    return {sum + cost.total(),
            std::max(slowest, cost.total()),
            std::max(forward, cost.forward),
            std::max(backward, cost.backward),
            std::max({0.0, reduction, tail - cost.backward}),
            injected + bytes};
  }
  /// Iteration time by the schedule's closed form.
  double iteration_time(const plan::ScheduleTraits& traits, std::int64_t micro_batches) const {
    const double steady = traits.splits_bottleneck ? forward + backward : slowest;
    return sum + static_cast<double>(micro_batches - 1) * steady + tail;
  }
};

/// Less is better; the second decides between equal firsts.
struct Score {
  double first = std::numeric_limits<double>::infinity();
  double second = std::numeric_limits<double>::infinity();
  auto operator<=>(const Score&) const = default;
};

/// throughput and memory_efficiency (whose caps on memory are set elsewhere): iteration time; bottleneck: the slowest
/// stage; communication: bytes.
Score score(plan::Objective objective, const CutFigures& figures, const PipelineModel& model);

struct CutStage {
  std::size_t end = 0;  ///< items before its end
  Counts taken;         ///< devices of each queue
  bool recompute = false;
};

struct PipelineCut {
  std::vector<CutStage> stages;
  CutFigures figures;
};

/// Whether the stage fits with `from_end` stages from it to the end, itself included: with everything kept where that
/// is allowed and fits, else recomputed where that is allowed and fits.
enum class Variant : std::uint8_t { none, kept, recomputed };
Variant variant(const PipelineModel& model, int group, std::size_t begin, std::size_t end, std::int64_t from_end);

/// Figures of the stages as they are; false where one does not fit in memory. Chooses what is recomputed.
bool assess(PipelineModel& model, PipelineCut& cut);

}  // namespace millrace::partitioners
