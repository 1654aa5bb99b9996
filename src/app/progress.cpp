// Progress on standard error, so that standard output holds results only.
#include "app/progress.h"

#include <cmath>
#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

#include "base/text.h"
#include "runtime/process_memory.h"

namespace millrace::app {

Progress::Progress(std::int64_t begun, std::int64_t iterations, std::int64_t batch, bool quiet)
    : begun_(begun), iterations_(iterations), batch_(batch), quiet_(quiet), terminal_(isatty(STDERR_FILENO) != 0) {}

void Progress::show(const IterationRow& row) {
  if (quiet_) return;
  const auto now = Clock::now();
  const bool last = row.iteration == iterations_;
  const std::chrono::milliseconds pause(terminal_ ? 200 : 5000);
  if (!last && now - shown_ < pause) return;
  shown_ = now;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const double per_iteration = elapsed / static_cast<double>(row.iteration - begun_);
  const std::string loss = std::isnan(row.loss) ? "" : fmt::format("loss {:.4f}  ", row.loss);
  const std::string line =
      fmt::format("iteration {}/{}  epoch {}  {}{:.0f} samples/s  {}  {} left", row.iteration, iterations_, row.epoch,
                  loss, static_cast<double>(batch_) / per_iteration, format(Bytes(runtime::peak_resident_bytes())),
                  format(Seconds(per_iteration * static_cast<double>(iterations_ - row.iteration))));
  if (terminal_) {
    fmt::print(stderr, "\r\x1b[K{}", line);
    open_line_ = true;
  } else {
    fmt::print(stderr, "{}\n", line);
  }
  std::fflush(stderr);
}

void Progress::show(const EvaluationRow& row) {
  if (quiet_) return;
  finish();
  fmt::print(stderr, "test after iteration {}: loss {:.4f}, accuracy {:.2f} %\n", row.iteration, row.loss,
             row.accuracy * 100);
}

void Progress::finish() {
  if (open_line_) fmt::print(stderr, "\n");
  open_line_ = false;
}

}  // namespace millrace::app
