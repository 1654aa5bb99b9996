// The all-reduce of each gradient bucket over the ranks that own it.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/transport.h"
#include "program/program.h"
#include "runtime/stage_runner.h"

namespace millrace::runtime {

/// Where a bucket lies in the storage of the stage that this rank runs.
struct BucketPlace {
  StageRunner* runner = nullptr;  ///< null where this rank owns nothing of the bucket
  std::size_t first = 0;          ///< position in the storage order
  std::size_t count = 0;
};

class GradientReducer {
 public:
  /// Makes the groups of all buckets that this rank owns, in bucket order, which is the same on all ranks.
  GradientReducer(const Program& program, std::vector<StageRunner*> runners, int rank, comm::Transport& transport);

  const BucketPlace& place(std::int32_t bucket) const { return places_[static_cast<std::size_t>(bucket)]; }

  /// Starts the sum; a bucket with one owner is complete as it is.
  void start(std::int32_t bucket);
  void wait(std::int32_t bucket, comm::WaitObserver& observer);

 private:
  comm::Transport& transport_;
  std::vector<BucketPlace> places_;
  std::vector<comm::GroupId> groups_;  // by bucket; -1: no reduction
  std::vector<comm::Ticket> tickets_;  // by bucket
};

}  // namespace millrace::runtime
