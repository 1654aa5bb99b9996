// What training tells while it runs and when it ends.
#pragma once

#include <cstdint>
#include <optional>

#include "base/units.h"
#include "program/run_rows.h"
#include "program/timeline.h"

namespace millrace::runtime {

/// Hears of rows as they are made; called on every rank.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void iteration(const IterationRow& row) = 0;
  virtual void evaluation(const EvaluationRow& row) = 0;
  /// A checkpoint is about to be made: what was told so far must outlive it.
  virtual void before_checkpoint() {}
};

struct Outcome {
  Seconds iteration_time{};  ///< median after the first two iterations (after the first when fewer than five)
  double final_loss = 0;
  std::optional<EvaluationRow> evaluation;  ///< the last one; none: no one was due
  RankReport rank;                          ///< of the rank that asks
  Timeline last_iteration;                  ///< of the rank that asks
  std::int64_t iterations = 0;              ///< done, those before a checkpoint included
  int signal = 0;                           ///< that ended the run after a checkpoint; 0: none
};

}  // namespace millrace::runtime
