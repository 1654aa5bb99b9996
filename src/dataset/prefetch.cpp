// Reads the rows of the next steps in a thread of its own while the current step computes.
#include "dataset/prefetch.h"

#include <algorithm>
#include <utility>

namespace millrace::dataset {

Prefetcher::Prefetcher(const Source& source, Split split, Ask ask, std::size_t depth)
    : source_(source),
      split_(split),
      ask_(std::move(ask)),
      ring_(std::max<std::size_t>(1, depth) + 1),
      thread_([this] { work(); }) {}

Prefetcher::~Prefetcher() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  freed_.notify_one();
  thread_.join();
}

const Rows* Prefetcher::next() {
  std::unique_lock lock(mutex_);
  ++taken_;  // gives back what the last call handed out
  freed_.notify_one();
  filled_.wait(lock, [this] { return read_ >= taken_ || ended_; });
  if (read_ >= taken_) return &ring_[static_cast<std::size_t>(taken_ - 1) % ring_.size()];
  --taken_;
  if (failure_) std::rethrow_exception(failure_);
  return nullptr;
}

void Prefetcher::work() {
  RowRequest request;
  try {
    for (std::int64_t position = 0;; ++position) {
      {
        std::unique_lock lock(mutex_);
        // The slot of `position` is free once the step that lay in it before is no longer the one handed out last.
        const auto slots = static_cast<std::int64_t>(ring_.size());
        freed_.wait(lock, [&] { return stop_ || position - slots < std::max<std::int64_t>(taken_ - 1, 0); });
        if (stop_) return;
      }
      if (!ask_(position, request)) break;
      read(position, request, ring_[static_cast<std::size_t>(position) % ring_.size()]);
      {
        const std::scoped_lock lock(mutex_);
        read_ = position + 1;
      }
      filled_.notify_one();
    }
  } catch (...) {
    const std::scoped_lock lock(mutex_);
    failure_ = std::current_exception();
  }
  {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
  }
  filled_.notify_one();
}

void Prefetcher::read(std::int64_t position, const RowRequest& request, Rows& into) const {
  into.position = position;
  const SampleFormat& format = source_.format();
  const std::size_t inputs = request.input_ids.size() * static_cast<std::size_t>(format.input_size());
  if (format.kind == InputKind::real) {
    into.real_inputs.resize(inputs);
    if (inputs > 0) source_.read_inputs(split_, request.input_ids, into.real_inputs.data());
  } else {
    into.index_inputs.resize(inputs);
    if (inputs > 0) source_.read_inputs(split_, request.input_ids, into.index_inputs.data());
  }
  into.labels.resize(request.label_ids.size() * static_cast<std::size_t>(format.labels_per_sample));
  if (!into.labels.empty()) source_.read_labels(split_, request.label_ids, into.labels.data());
}

}  // namespace millrace::dataset
