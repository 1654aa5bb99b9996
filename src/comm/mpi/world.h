// The ranks of this job: start and end of MPI, and the few blocking exchanges that commands need outside training.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <mpi.h>

#include "base/errors.h"
#include "base/units.h"
#include "comm/mpi/pulse.h"
#include "comm/shared_error.h"

namespace millrace::comm {

/// MPI from construction to finish(). Outside a launcher it is a world of one. A rank whose process stops or is lost
/// ends the job, with a message of the rank before it; the exchanges below wait for ranks that work as long as it
/// takes.
class World {
 public:
  /// A world of one without MPI, for commands that need no other rank.
  World();
  /// Starts MPI. \throws SystemError  when it does not grant MPI_THREAD_MULTIPLE: the progress thread needs it.
  World(int* argc, char*** argv);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool root() const { return rank_ == 0; }
  const std::string& host() const { return host_; }
  MPI_Comm communicator() const { return communicator_; }

  /// The text of rank 0, on every rank.
  std::string broadcast(const std::string& text) const;
  /// The texts of all ranks in rank order, on rank 0; empty elsewhere.
  std::vector<std::string> gather(const std::string& text) const;
  /// The texts of all ranks in rank order, on every rank. \pre no text holds a line break.
  std::vector<std::string> gather_to_all(const std::string& line) const;
  /// Runs `make` on rank 0 and gives its text to all. An Error of `make` is a SharedError on every rank.
  std::string on_root_then_all(const std::function<std::string()>& make) const;

  void barrier() const;

  /// Silence of a rank that is allowed from now on (Pulse).
  void stall_limit(Seconds limit) const;
  /// What the job does from now on, for that message: "chooses a plan". A literal.
  void now(const char* what) const { what_.store(what, std::memory_order_relaxed); }
  /// While it lives, the waits of this rank have a watchdog of their own, which knows more to tell.
  class WatchedElsewhere {
   public:
    explicit WatchedElsewhere(const World& world);
    WatchedElsewhere(const WatchedElsewhere&) = delete;
    WatchedElsewhere& operator=(const WatchedElsewhere&) = delete;
    ~WatchedElsewhere();

   private:
    const World& world_;
  };

  /// Ends MPI; no collective runs in the destructor, since an error may have stopped some ranks only.
  void finish();
  /// Ends all ranks of the job at once with `code`.
  [[noreturn]] void abort(ExitCode code) const;

 private:
  MPI_Comm communicator_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  std::string host_;
  mutable std::atomic<const char*> what_{"starts"};
  mutable std::atomic<const char*> whose_limit_{"no experiment is read yet"};
  std::unique_ptr<Pulse> pulse_;
};

}  // namespace millrace::comm
