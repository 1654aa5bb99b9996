// The sums that all ranks agree on once per iteration: the loss and the squares of every gradient tensor.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/transport.h"
#include "program/program.h"
#include "runtime/gradient_reducer.h"
#include "runtime/signals.h"

namespace millrace::runtime {

/// One vector, summed over all ranks by one operation: entry t is Σ g² of the t-th tensor, given by its lowest owner
/// alone, so the norm does not depend on where stages are cut; then come the signals, and last the weighted losses.
class StepSums {
 public:
  StepSums(const Graph& graph, const Program& program, int rank, comm::Transport& transport);

  void clear();
  void add_loss(double weighted) { values_[values_.size() - 2] += weighted; }
  void add_correct(double weighted) { values_[values_.size() - 1] += weighted; }
  /// Adds the squares of the bucket's gradients if this rank is its lowest owner. \pre the bucket is reduced.
  void add_squares(std::int32_t bucket, const BucketPlace& place);
  /// Signals that this rank received: they travel with the sums.
  void add_signals(const SignalCounts& counts);
  void reduce(comm::WaitObserver& observer);

  double loss() const { return values_[values_.size() - 2]; }
  double correct() const { return values_[values_.size() - 1]; }
  /// Of all ranks.
  SignalCounts signals() const;
  /// Global L2 norm over all parameters, a tied one counted once; buffers do not count.
  double gradient_norm() const;

 private:
  const Program& program_;
  int rank_;
  comm::Transport& transport_;
  comm::GroupId all_ = -1;
  std::int64_t parameters_ = 0;      // entries of gradient tensors
  std::vector<std::int32_t> entry_;  // by tensor id; -1: no parameter
  std::vector<double> values_;
};

}  // namespace millrace::runtime
