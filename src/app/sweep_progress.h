// How far a sweep is: one redrawn line on a terminal, a plain line every few seconds elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace millrace::app {

class SweepProgress {
 public:
  /// \param cells  to be worked on; `finished_before` of them need no work any more.
  /// \param expected_s  the time that the others are thought to take.
  SweepProgress(std::int64_t cells, std::int64_t finished_before, double expected_s, bool quiet);

  /// A cell has ended. \param expected_s  what it was thought to take.
  void ended(const std::string& status, double expected_s);
  /// A line of its own about a cell, at once.
  void tell(const std::string& line);
  /// Leaves the line as it is and goes on to the next.
  void finish();

  /// "1,380 done, 58 infeasible, 2 timeout", of those that ended.
  std::string counts() const;

 private:
  using Clock = std::chrono::steady_clock;

  std::int64_t cells_;
  std::int64_t finished_;
  double expected_s_;
  double worked_s_ = 0;  // of the expected time, what has ended
  bool quiet_;
  bool terminal_;
  bool open_line_ = false;
  std::map<std::string, std::int64_t> counts_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point shown_{};
};

}  // namespace millrace::app
