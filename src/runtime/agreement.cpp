// Sums in which each rank fills its own places: all that the transport needs to offer.
#include "runtime/agreement.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "base/errors.h"
#include "comm/shared_error.h"

namespace millrace::runtime {
namespace {

constexpr std::size_t kTextLength = 500;

constexpr std::chrono::milliseconds kLongestPause{50};  // between two sums that say how far all are

std::string from_doubles(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) {
    if (value > 0) text += static_cast<char>(static_cast<unsigned char>(value));
  }
  return text;
}

}  // namespace

/// How far the work of this rank is; told by one thread, asked by another.
class Agreement::Progress {
 public:
  void step() { steps_.fetch_add(1, std::memory_order_relaxed); }
  std::int64_t steps() const { return steps_.load(std::memory_order_relaxed); }
  void end() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    end_.notify_one();
  }
  /// Waits so long at most.
  bool ended_within(std::chrono::milliseconds pause) {
    std::unique_lock lock(mutex_);
    return end_.wait_for(lock, pause, [this] { return ended_; });
  }

 private:
  std::atomic<std::int64_t> steps_{0};
  std::mutex mutex_;
  std::condition_variable end_;
  bool ended_ = false;
};

Agreement::Agreement(comm::Transport& transport) : transport_(transport) {
  std::vector<int> everyone(static_cast<std::size_t>(transport.size()));
  std::iota(everyone.begin(), everyone.end(), 0);
  if (everyone.size() > 1) all_ = transport.group(everyone);
}

// Sums that say how far all are, until all have ended. Without a step of anybody it is one long wait.
void Agreement::wait_for_all(Progress& own, comm::WaitObserver& observer) {
  std::chrono::milliseconds pause{1};
  double known = 0;
  observer.waiting();
  while (true) {
    const bool ended = own.ended_within(pause);
    pause = std::min(2 * pause, kLongestPause);
    std::vector<double> all{ended ? 1.0 : 0.0, static_cast<double>(own.steps())};
    sum(all, nullptr);
    if (all_ < 0 ? ended : all[0] == static_cast<double>(transport_.size())) break;
    if (all[1] > known) observer.waiting();
    known = all[1];
  }
  observer.finished();
}

void Agreement::sum(std::vector<double>& values, comm::WaitObserver* observer) {
  if (all_ < 0) return;
  const auto count = static_cast<std::int64_t>(values.size());
  transport_.wait(transport_.all_reduce(all_, values.data(), count, comm::Element::float64), observer);
}

std::vector<double> Agreement::after(std::size_t width, const Work& work, comm::WaitObserver& observer) {
  const auto rank = static_cast<std::size_t>(transport_.rank());
  const auto ranks = static_cast<std::size_t>(transport_.size());
  std::vector<double> values(ranks * (width + 1));  // the last `ranks`: the exit codes of failures
  std::string failure;
  Progress own;
  std::thread worker([&] {
    try {
      const std::vector<double> numbers = work([&own] { own.step(); });
      std::copy_n(numbers.begin(), width, values.begin() + static_cast<std::ptrdiff_t>(rank * width));
    } catch (const Error& error) {
      failure = error.what();
      values[ranks * width + rank] = static_cast<double>(error.code());
    } catch (const std::exception& error) {
      failure = error.what();
      values[ranks * width + rank] = static_cast<double>(ExitCode::failed);
    }
    own.end();
  });
  wait_for_all(own, observer);
  worker.join();
  sum(values, &observer);
  const auto codes = values.begin() + static_cast<std::ptrdiff_t>(ranks * width);
  const auto failed = std::find_if(codes, values.end(), [](double code) { return code != 0; });
  if (failed == values.end()) {
    values.erase(codes, values.end());
    return values;
  }
  std::vector<double> text(kTextLength);
  const auto lowest = static_cast<std::size_t>(failed - codes);
  if (lowest == rank) {
    const std::string told = ranks > 1 ? fmt::format("rank {}: {}", rank, failure) : failure;
    for (std::size_t i = 0; i < std::min(told.size(), kTextLength); ++i) {
      text[i] = static_cast<double>(static_cast<unsigned char>(told[i]));
    }
  }
  sum(text, &observer);
  throw comm::SharedError(static_cast<ExitCode>(static_cast<int>(*failed)), from_doubles(text));
}

}  // namespace millrace::runtime
