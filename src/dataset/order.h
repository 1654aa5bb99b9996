// Which samples make up each step's global batch: one permutation an epoch, the same on every rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace::dataset {

/// What becomes of the samples that do not fill the last batch of an epoch.
enum class Tail {
  drop,    ///< left out of this epoch
  pad,     ///< a whole batch, its last rows repeat samples and do not count
  uneven,  ///< a smaller batch
};

/// Values of `data.tail`, in the order of Tail.
const std::vector<std::string>& tail_names();

/// The global batch of one step.
struct Batch {
  std::int64_t epoch = 0;         ///< from 0
  std::vector<std::int64_t> ids;  ///< sample numbers, row after row
  std::int64_t valid = 0;         ///< rows that count: the first ones; the others are padding
};

/// Steps over the whole run in, sample numbers out: a function of (seed, epoch) only, whatever the ranks, pipelines and
/// micro-batches (REPORTS D02, D05, K05), so a step's batch needs no state to resume from.
/// Holds the permutation of the epoch asked for last; asking for another epoch costs O(samples).
class SampleOrder {
 public:
  /// Shuffled anew each epoch: Fisher-Yates with Random(seed, "shuffle", epoch).
  /// \throws InvalidInput for less than one sample or row, and for a batch larger than the data under Tail::drop.
  SampleOrder(std::uint64_t seed, std::int64_t samples, std::int64_t batch, Tail tail);
  /// Samples as they lie in the file, every epoch alike: for evaluation.
  static SampleOrder in_file_order(std::int64_t samples, std::int64_t batch, Tail tail);

  std::int64_t steps_per_epoch() const { return steps_; }
  std::int64_t dropped_per_epoch() const;

  /// Rows that count in the batch of `step`, counted from 0 over the run.
  std::int64_t valid_rows(std::int64_t step) const;
  /// Fills `into`, whose memory is used again.
  void batch(std::int64_t step, Batch& into);
  Batch batch(std::int64_t step);

 private:
  SampleOrder(std::int64_t samples, std::int64_t batch, Tail tail);
  void shuffle(std::int64_t epoch);

  std::uint64_t seed_ = 0;
  std::int64_t samples_;
  std::int64_t batch_;
  Tail tail_;
  std::int64_t steps_;
  bool shuffled_ = false;
  std::int64_t epoch_ = -1;  ///< of the permutation held
  std::vector<std::int64_t> permutation_;
};

}  // namespace millrace::dataset
