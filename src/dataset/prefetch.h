// Reads the rows of the next steps in a thread of its own while the current step computes.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "dataset/source.h"

namespace millrace::dataset {

/// Rows that one rank needs in one step: a rank of the first stage inputs, one of the last stage labels, one of the
/// middle nothing.
struct RowRequest {
  std::vector<std::int64_t> input_ids;
  std::vector<std::int64_t> label_ids;
};

/// What was read for one step. One of the two inputs is empty, as the source's kind says.
struct Rows {
  std::int64_t position = 0;  ///< 0 for the first step asked for
  std::vector<float> real_inputs;
  std::vector<std::int32_t> index_inputs;
  std::vector<std::int32_t> labels;
};

/// Keeps up to `depth` steps read ahead. Its buffers circulate: after the first steps nothing is allocated. An error
/// of the reading thread is thrown by next() in its turn. The destructor waits for the read under way only.
class Prefetcher {
 public:
  /// Fills the request of step `position` (its vectors come with the content of an earlier step) and returns true, or
  /// returns false at the end. Called by the reading thread, in order.
  using Ask = std::function<bool(std::int64_t position, RowRequest& request)>;

  /// `source` must outlive the prefetcher.
  Prefetcher(const Source& source, Split split, Ask ask, std::size_t depth = 1);
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;
  ~Prefetcher();

  /// The next step's rows, valid until the next call; null after the last one. Waits if they are not yet read.
  const Rows* next();

 private:
  void work();
  void read(std::int64_t position, const RowRequest& request, Rows& into) const;

  const Source& source_;
  const Split split_;
  const Ask ask_;

  std::mutex mutex_;
  std::condition_variable filled_;  ///< to the consumer: one more is read, or the end has come
  std::condition_variable freed_;   ///< to the reader: a buffer is free, or it is to stop
  std::vector<Rows> ring_;          ///< depth + 1: the consumer holds one of them
  std::int64_t read_ = 0;           ///< steps read so far
  std::int64_t taken_ = 0;          ///< steps handed out so far
  bool ended_ = false;
  bool stop_ = false;
  std::exception_ptr failure_;
  std::thread thread_;              ///< last: it uses all of the above
};

}  // namespace millrace::dataset
