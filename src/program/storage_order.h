// In which order a rank stores the tensors of its stage, so that every bucket is one range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "program/program.h"

namespace millrace {

/// A bucket as a stage stores it: the tensors storage_order()[first .. first + count).
struct StoredBucket {
  std::int32_t bucket = -1;
  std::size_t first = 0;
  std::size_t count = 0;

  bool operator==(const StoredBucket&) const = default;
};

/// All parameters and buffers of `stage` (index in Program::stages), bucket after bucket. An evaluation program has
/// the same buckets as the training program of its plan. \param shard  of a tensor-parallel stage: the rank's part
std::vector<TensorId> storage_order(const Program& program, std::int32_t stage, int shard = 0);

/// The buckets that `stage` takes part in, ascending. It holds all tensors of each: buckets never straddle sets of
/// stages.
std::vector<StoredBucket> stored_buckets(const Program& program, std::int32_t stage, int shard = 0);

}  // namespace millrace
