// How far a run is: one redrawn line on a terminal, a plain line every few seconds elsewhere.
#pragma once

#include <chrono>
#include <cstdint>

#include "program/run_rows.h"

namespace millrace::app {

class Progress {
 public:
  /// \param begun  iterations that an earlier run did.
  Progress(std::int64_t begun, std::int64_t iterations, std::int64_t batch, bool quiet);
  void show(const IterationRow& row);
  void show(const EvaluationRow& row);
  /// Leaves the line as it is and goes on to the next.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;

  std::int64_t begun_;
  std::int64_t iterations_;
  std::int64_t batch_;
  bool quiet_;
  bool terminal_;
  bool open_line_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point shown_{};
};

}  // namespace millrace::app
