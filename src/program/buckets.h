// Groups the parameters and buffers of all stages into the buckets whose gradients are reduced together (METHODS 5).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/even_parts.h"
#include "base/units.h"
#include "graph/graph.h"
#include "program/program.h"

namespace millrace {

/// The buckets of `stages`, in the one order in which every rank issues their reductions: the order in which a
/// backward pass completes them, last operators first. A tensor belongs to all ranks that hold a stage using it, in
/// every pipeline; tensors of the same stages fill a bucket up to `bucket_size` (4 bytes an element), and a larger one
/// has its own. A tied parameter counts from its earliest use, since its last contribution comes from there. A
/// tensor-parallel stage has such buckets for each of its shards, of that shard's part.
/// \throws InvalidInput  a parameter of stages with different numbers of shards.
std::vector<Bucket> make_buckets(const Graph& graph, const std::vector<ProgramStage>& stages, Bytes bucket_size);

/// The operator of `stage` whose backward completes the stage's gradients of `bucket`: a backward goes from the last
/// operator to the first, so it is the first that uses one of its tensors. -1: none does.
OpId completing_op(const Graph& graph, const Bucket& bucket, const ProgramStage& stage);

/// What the bucket's owners hold of it, in elements. \pre its stages are not tensor-parallel
std::int64_t bucket_elements(const Graph& graph, const Bucket& bucket);

/// Whether the owners of a bucket update a part each.
inline bool is_sharded(const Program& program, const Bucket& bucket) {
  return program.shard_optimizer && bucket.owners.size() > 1;
}

/// What `owner` updates of a bucket, in elements: all of it where that is not divided.
ElementRange updated_part(const Graph& graph, const Program& program, const Bucket& bucket, int owner);

/// What the rank keeps optimizer state of, in elements of the storage order of `stage`: ascending, not adjacent.
/// Nothing: all.
std::optional<std::vector<ElementRange>> kept_states(const Graph& graph, const Program& program, std::int32_t stage,
                                                     int rank);

}  // namespace millrace
