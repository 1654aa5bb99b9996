// The sums that all ranks agree on once per iteration: the loss and the squares of every gradient tensor.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/transport.h"
#include "program/program.h"
#include "runtime/gradient_reducer.h"

namespace millrace::runtime {

/// One vector, summed over all ranks by one operation: entry t is Σ g² of the t-th tensor, given by its lowest owner
/// alone, so the norm does not depend on where stages are cut; the last entries are the weighted losses and how many
/// updates were left out.
class StepSums {
 public:
  StepSums(const Graph& graph, const Program& program, int rank, comm::Transport& transport);

  void clear();
  void add_loss(double weighted) { values_[values_.size() - 3] += weighted; }
  void add_correct(double weighted) { values_[values_.size() - 2] += weighted; }
  void add_left_out() { values_[values_.size() - 1] += 1; }
  /// Adds the squares of the bucket's gradients if this rank is its lowest owner. \pre the bucket is reduced.
  void add_squares(std::int32_t bucket, const BucketPlace& place);
  /// The same, and on every owner: whether all of the bucket's gradients are finite. What is not is not added.
  bool add_finite_squares(std::int32_t bucket, const BucketPlace& place);
  void reduce(comm::WaitObserver& observer) {
    start();
    finish(observer);
  }
  /// The two halves of reduce(); other work may lie between them.
  void start();
  void finish(comm::WaitObserver& observer);

  double loss() const { return values_[values_.size() - 3]; }
  double correct() const { return values_[values_.size() - 2]; }
  bool left_out() const { return values_[values_.size() - 1] > 0; }
  /// Global L2 norm over all parameters, a tied one counted once; buffers do not count.
  double gradient_norm() const;

 private:
  const Program& program_;
  int rank_;
  comm::Transport& transport_;
  bool is_lowest_owner(std::int32_t bucket) const;

  comm::GroupId all_ = -1;
  comm::Ticket ticket_ = comm::kNoTicket;
  std::vector<std::int32_t> entry_;  // by tensor id; -1: no parameter
  std::vector<double> values_;
};

}  // namespace millrace::runtime
