// Lays the buckets of a stage one after the other.
#include "program/storage_order.h"

#include <algorithm>

#include "program/part_collectives.h"

namespace millrace {

std::vector<StoredBucket> stored_buckets(const Program& program, std::int32_t stage, int shard) {
  std::vector<StoredBucket> stored;
  std::size_t next = 0;
  for (std::size_t b = 0; b < program.buckets.size(); ++b) {
    const Bucket& bucket = program.buckets[b];
    if (!std::binary_search(bucket.stages.begin(), bucket.stages.end(), stage)) continue;
    const bool whole = shards_of(program.stages[static_cast<std::size_t>(stage)], bucket.tensors.front()) == 1;
    if (!whole && bucket.shard != shard) continue;
    stored.push_back({static_cast<std::int32_t>(b), next, bucket.tensors.size()});
    next += bucket.tensors.size();
  }
  return stored;
}

std::vector<TensorId> storage_order(const Program& program, std::int32_t stage, int shard) {
  std::vector<TensorId> order;
  for (const StoredBucket& stored : stored_buckets(program, stage, shard)) {
    const std::vector<TensorId>& tensors = program.buckets[static_cast<std::size_t>(stored.bucket)].tensors;
    order.insert(order.end(), tensors.begin(), tensors.end());
  }
  return order;
}

}  // namespace millrace
