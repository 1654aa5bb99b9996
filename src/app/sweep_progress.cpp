// Progress of a sweep on standard error.
#include "app/sweep_progress.h"

#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

#include "base/text.h"

namespace millrace::app {

SweepProgress::SweepProgress(std::int64_t cells, std::int64_t finished_before, double expected_s, bool quiet)
    : cells_(cells),
      finished_(finished_before),
      expected_s_(expected_s),
      quiet_(quiet),
      terminal_(isatty(STDERR_FILENO) != 0) {}

void SweepProgress::ended(const std::string& status, double expected_s) {
  ++finished_;
  ++counts_[status];
  worked_s_ += expected_s;
  const auto now = Clock::now();
  const std::chrono::milliseconds pause(terminal_ ? 200 : 5000);
  if (quiet_ || (finished_ < cells_ && now - shown_ < pause)) return;
  shown_ = now;
  // The guesses are off by a common factor that the first cells tell.
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const double left = worked_s_ > 0 ? elapsed * (expected_s_ - worked_s_) / worked_s_ : 0;
  const std::string line = fmt::format("cell {}/{}  {}  {} left", finished_, cells_, counts(), format(Seconds(left)));
  fmt::print(stderr, "{}{}{}", terminal_ ? "\r\x1b[K" : "", line, terminal_ ? "" : "\n");
  open_line_ = terminal_;
  std::fflush(stderr);
}

void SweepProgress::tell(const std::string& line) {
  if (quiet_) return;
  fmt::print(stderr, "{}{}\n", open_line_ ? "\r\x1b[K" : "", line);
  open_line_ = false;
  std::fflush(stderr);
}

void SweepProgress::finish() {
  if (open_line_) fmt::print(stderr, "\n");
  open_line_ = false;
}

std::string SweepProgress::counts() const {
  std::string text;
  for (const auto& [status, count] : counts_) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, status);
  return text.empty() ? "none" : text;
}

}  // namespace millrace::app
