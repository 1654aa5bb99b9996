// Signs of life between the ranks of a job: tells that a rank is stopped or lost whatever the others wait for.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include <mpi.h>

#include "base/units.h"

namespace millrace::comm {

/// A thread of each rank tells the rank before it, a few times a second, that this process runs, and listens to the
/// rank behind it; the last rank is before the first. However long a rank works, its thread goes on: only a process
/// that does not run is silent. Where all stop together, as a suspended job does, the silence counts from their return.
class Pulse {
 public:
  /// What it finds out is told on the thread, once, to one of these, which end the job.
  struct Listeners {
    std::function<void(int rank, Seconds silence)> silent;  ///< the rank that has not been heard, and for how long
    std::function<void(const std::string& why)> failed;     ///< signs cannot be told or heard
  };
  /// Collective over `communicator`, of two ranks at least.
  Pulse(MPI_Comm communicator, Seconds limit, Listeners listeners);
  Pulse(const Pulse&) = delete;
  Pulse& operator=(const Pulse&) = delete;
  /// Ends the thread without a word to the others, who are about to be ended.
  ~Pulse();

  /// Silence that is allowed from now on, two seconds at least.
  void limit(Seconds limit);
  /// Others watch the waits of this rank: silence is theirs to tell. Signs go on.
  void listen(bool listens) { listens_.store(listens, std::memory_order_relaxed); }
  /// Tells that no more signs come, and waits for the same from the rank that this one listens to. Collective.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void run();
  void beat();
  bool hear();  ///< whether there was a sign
  void tell(char sign);
  void look(Clock::time_point now);

  MPI_Comm communicator_ = MPI_COMM_NULL;
  int listener_ = -1;  // who hears this rank
  int heard_ = -1;     // whom it hears
  Listeners listeners_;
  std::atomic<std::int64_t> limit_;  // nanoseconds
  std::atomic<bool> listens_{true};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  bool finish_ = false;
  // Of the thread.
  MPI_Request sending_ = MPI_REQUEST_NULL;
  MPI_Request receiving_ = MPI_REQUEST_NULL;
  char sent_ = 0;
  char received_ = 0;
  bool gone_ = false;  // the one that it hears has finished
  Clock::time_point last_sign_, looked_, awake_;
  std::thread thread_;
};

}  // namespace millrace::comm
