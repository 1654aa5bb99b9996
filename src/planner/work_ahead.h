// A list of questions whose answers are worked out ahead on several threads and taken one after the other.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace millrace::planner {

/// `answer(index, thread)` runs on one of `threads` threads, 0 … threads − 1, for indices from 0 up, a few ahead of the
/// one that is taken: an answer may be of no use by then, so `answer` looks again whether it still is. What it throws
/// is thrown where the answer is taken. One thread: each is worked out when it is taken.
template <class Answer>
class WorkAhead {
 public:
  using Work = std::function<Answer(std::size_t index, std::size_t thread)>;

  WorkAhead(std::size_t count, std::size_t threads, Work answer)
      : count_(count), ahead_(4 * threads), answer_(std::move(answer)), slots_(count) {
    try {
      for (std::size_t t = 0; threads > 1 && t < threads; ++t) {
        threads_.emplace_back([this, t](const std::stop_token& stop) { work(t, stop); });
      }
    } catch (const std::system_error&) {
      // The system has no more of them: those that run do the work, or the caller.
    }
  }

  WorkAhead(const WorkAhead&) = delete;
  WorkAhead& operator=(const WorkAhead&) = delete;
  ~WorkAhead() {
    for (std::jthread& thread : threads_) thread.request_stop();
    { const std::lock_guard lock(guard_); }  // no thread is between its last look and its sleep
    changed_.notify_all();
  }

  /// \pre called for 0, 1, 2, … in turn.
  Answer take(std::size_t index) {
    if (threads_.empty()) return answer_(index, 0);
    std::unique_lock lock(guard_);
    taken_ = index;
    changed_.notify_all();
    changed_.wait(lock, [&] { return slots_[index].answer || slots_[index].error; });
    if (slots_[index].error) std::rethrow_exception(slots_[index].error);
    Answer answer = std::move(*slots_[index].answer);
    slots_[index].answer.reset();
    return answer;
  }

 private:
  struct Slot {
    std::optional<Answer> answer;
    std::exception_ptr error;
  };

  void work(std::size_t thread, const std::stop_token& stop) {
    std::unique_lock lock(guard_);
    while (next_ < count_) {
      changed_.wait(lock, [&] { return stop.stop_requested() || next_ >= count_ || next_ < taken_ + ahead_; });
      if (stop.stop_requested() || next_ >= count_) return;
      const std::size_t index = next_++;
      lock.unlock();
      Slot slot;
      try {
        slot.answer = answer_(index, thread);
      } catch (...) {
        slot.error = std::current_exception();
      }
      lock.lock();
      slots_[index] = std::move(slot);
      changed_.notify_all();
    }
    changed_.notify_all();
  }

  std::size_t count_;
  std::size_t ahead_;
  Work answer_;
  std::mutex guard_;
  std::condition_variable changed_;
  std::size_t next_ = 0, taken_ = 0;
  std::vector<Slot> slots_;
  std::vector<std::jthread> threads_;  // last: they use all of the above
};

}  // namespace millrace::planner
