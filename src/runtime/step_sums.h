// The sums that all ranks agree on once per iteration: the loss and the squares of every gradient tensor.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/transport.h"
#include "program/program.h"
#include "runtime/exact_sum.h"
#include "runtime/gradient_reducer.h"
#include "runtime/signals.h"

namespace millrace::runtime {

/// Σ g² of `part` of the elements of the tensor at a position of the storage order; 0 where there are no values.
double gradient_squares(kernels::StageParameters& parameters, std::size_t position, ElementRange part);

/// One vector, summed over all ranks by one operation: entry t is Σ g² of the t-th tensor, given by its lowest owner
/// alone, so the norm does not depend on where stages are cut, or by each owner for the part that it updates; then come
/// how many updates were left out and the signals, and last the weighted losses and right answers, as exact sums.
class StepSums {
 public:
  StepSums(const Graph& graph, const Program& program, int rank, comm::Transport& transport);

  void clear();
  void add_loss(double weighted) { add_exactly(weighted, limbs(0)); }
  void add_correct(double weighted) { add_exactly(weighted, limbs(1)); }
  void add_left_out() { values_[parameters_] += 1; }
  /// Signals that this rank received: they travel with the sums.
  void add_signals(const SignalCounts& counts);
  /// Adds the squares of the bucket's gradients if this rank is its lowest owner, or of its part. \pre the bucket is
  /// reduced.
  void add_squares(std::int32_t bucket, const BucketPlace& place);
  /// The same, and on every owner: whether all of the bucket's gradients are finite. What is not is not added.
  bool add_finite_squares(std::int32_t bucket, const BucketPlace& place);
  /// For a bucket of one tensor that is updated part by part: Σ g² of the parts that are finite, and whether all are.
  void add_parts(std::int32_t bucket, const BucketPlace& place, double squares, bool finite);
  void reduce(comm::WaitObserver& observer) {
    start();
    finish(observer);
  }
  /// The two halves of reduce(); other work may lie between them.
  void start();
  void finish(comm::WaitObserver& observer);

  double loss() const { return value_of(limbs(0)); }
  double correct() const { return value_of(limbs(1)); }
  bool left_out() const { return values_[parameters_] > 0; }
  /// Of all ranks.
  SignalCounts signals() const;
  /// Global L2 norm over all parameters, a tied one counted once; buffers do not count.
  double gradient_norm() const;

 private:
  static constexpr std::size_t kSignals = 3;

  bool tells(std::int32_t bucket, const BucketPlace& place) const;
  template <class F>
  void each_square(const BucketPlace& place, F f) const;
  std::size_t first_limb(std::size_t sum) const { return parameters_ + 1 + kSignals + sum * kExactLimbs; }
  std::span<double, kExactLimbs> limbs(std::size_t sum) {
    return std::span<double, kExactLimbs>(values_.data() + first_limb(sum), kExactLimbs);
  }
  std::span<const double, kExactLimbs> limbs(std::size_t sum) const {
    return std::span<const double, kExactLimbs>(values_.data() + first_limb(sum), kExactLimbs);
  }

  const Program& program_;
  int rank_;
  comm::Transport& transport_;
  comm::GroupId all_ = -1;
  comm::Ticket ticket_ = comm::kNoTicket;
  std::size_t parameters_ = 0;       // entries of gradient tensors
  std::vector<std::int32_t> entry_;  // by tensor id; -1: no parameter
  std::vector<double> values_;
  std::vector<double> squares_;  // of the tensors of one bucket
};

}  // namespace millrace::runtime
