// Who works on the cells of a sweep: processes of this one, and the other ranks of its job.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/cell_work.h"
#include "app/child_process.h"
#include "comm/mpi/mailbox.h"

namespace millrace::app {

/// A cell at work in a process of its own: what ends that process ends no other cell.
class CellProcess {
 public:
  explicit CellProcess(const CellTask& task);

  int output() const { return child_.output(); }
  /// The document of work_on() with `time_s` and `peak_rss_bytes`, once the cell has ended; a cell over its time limit
  /// is ended here. Whatever happened is a status and a reason. \param readable  whether output() is known to be.
  std::optional<std::string> finished(bool readable);

 private:
  using Clock = std::chrono::steady_clock;

  std::optional<Seconds> limit_;
  Clock::time_point start_ = Clock::now();
  Child child_;
};

/// A finished cell: its number as it was started, and the document of CellProcess::finished().
struct CellOutcome {
  std::size_t cell = 0;
  std::string document;
};

/// Rank 0's side.
class CellPool {
 public:
  /// \param processes  that work here at once.
  /// \param mailbox  to the other ranks, one cell at a time each; null where there are none.
  CellPool(int processes, const comm::Mailbox* mailbox);

  int workers() const { return static_cast<int>(slots_.size()); }
  bool has_room() const;
  bool idle() const;
  /// \pre has_room().
  void start(std::size_t cell, const CellTask& task);
  /// Waits for a while, and returns what has ended by then.
  std::vector<CellOutcome> wait();
  /// Tells the other ranks that there is no more to do. \pre idle().
  void dismiss() const;

 private:
  struct Slot {
    int rank = 0;  // 0: a process here
    bool busy = false;
    std::size_t cell = 0;
    std::unique_ptr<CellProcess> process;
  };

  void wait_for_processes(std::vector<CellOutcome>& ended);

  std::vector<Slot> slots_;
  const comm::Mailbox* mailbox_;
};

/// Works on one cell in a process of its own and waits for its end. \returns its document.
std::string worked_off(const CellTask& task);

/// The other ranks' side: works on what rank 0 sends until it is dismissed.
void serve_cells(const comm::Mailbox& mailbox);

}  // namespace millrace::app
