// Messages of one byte around a ring, each of them behind the one before it.
#include "comm/mpi/pulse.h"

#include <algorithm>
#include <utility>

#include "base/errors.h"
#include "comm/mpi/mpi_error.h"

namespace millrace::comm {
namespace {

using std::chrono::nanoseconds;

constexpr std::chrono::milliseconds kBetweenSigns{250};
constexpr std::chrono::milliseconds kAtTheEnd{2};  // between two looks for the last sign
constexpr double kLeastLimit = 2;                  // seconds: a busy machine runs a thread late
constexpr char kAlive = 1, kEnds = 2;

std::int64_t in_nanoseconds(Seconds limit) {
  return static_cast<std::int64_t>(std::max(kLeastLimit, limit.value()) * 1e9);
}

}  // namespace

Pulse::Pulse(MPI_Comm communicator, Seconds limit, Listeners listeners)
    : listeners_(std::move(listeners)), limit_(in_nanoseconds(limit)) {
  int rank = 0, size = 1;
  check_mpi(MPI_Comm_dup(communicator, &communicator_), "MPI_Comm_dup");
  check_mpi(MPI_Comm_rank(communicator_, &rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(communicator_, &size), "MPI_Comm_size");
  listener_ = (rank + size - 1) % size;
  heard_ = (rank + 1) % size;
  last_sign_ = looked_ = awake_ = Clock::now();
  thread_ = std::thread([this] { run(); });
}

Pulse::~Pulse() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Pulse::limit(Seconds limit) { limit_.store(in_nanoseconds(limit), std::memory_order_relaxed); }

void Pulse::finish() {
  {
    const std::lock_guard lock(mutex_);
    finish_ = true;
  }
  wake_.notify_one();
  thread_.join();
  check_mpi(MPI_Comm_free(&communicator_), "MPI_Comm_free");
}

bool Pulse::hear() {
  bool any = false;
  while (!gone_) {
    if (receiving_ == MPI_REQUEST_NULL) {
      check_mpi(MPI_Irecv(&received_, 1, MPI_CHAR, heard_, 0, communicator_, &receiving_), "MPI_Irecv");
    }
    int done = 0;
    check_mpi(MPI_Test(&receiving_, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done == 0) break;
    any = true;
    gone_ = received_ == kEnds;
  }
  return any;
}

// One that was not taken yet stands for those after it.
void Pulse::tell(char sign) {
  int done = 1;
  if (sending_ != MPI_REQUEST_NULL) check_mpi(MPI_Test(&sending_, &done, MPI_STATUS_IGNORE), "MPI_Test");
  if (done == 0 || sent_ == kEnds) return;
  sent_ = sign;
  check_mpi(MPI_Isend(&sent_, 1, MPI_CHAR, listener_, 0, communicator_, &sending_), "MPI_Isend");
}

void Pulse::look(Clock::time_point now) {
  const nanoseconds limit(limit_.load(std::memory_order_relaxed));
  if (hear()) last_sign_ = now;
  if (now - looked_ > limit / 2) awake_ = now;  // this process was stopped itself
  looked_ = now;
  const nanoseconds silence = now - std::max(awake_, last_sign_);
  if (gone_ || silence < limit || !listens_.load(std::memory_order_relaxed)) return;
  listeners_.silent(heard_, Seconds(static_cast<double>(silence.count()) * 1e-9));
  gone_ = true;
}

// Nobody above would catch what the thread throws.
void Pulse::run() {
  try {
    beat();
  } catch (const Error& error) {
    listeners_.failed(error.what());
  }
}

void Pulse::beat() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const bool ends = finish_;
    lock.unlock();
    tell(ends ? kEnds : kAlive);
    look(Clock::now());
    const bool over = ends && sent_ == kEnds && sending_ == MPI_REQUEST_NULL && gone_;
    lock.lock();
    if (over) return;
    wake_.wait_for(lock, ends ? kAtTheEnd : kBetweenSigns, [&] { return stop_ || finish_ != ends; });
  }
}

}  // namespace millrace::comm
