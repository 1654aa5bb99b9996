// Groups the parameters and buffers of all stages into the buckets whose gradients are reduced together (METHODS 5).
#pragma once

#include <vector>

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

/// The operator of `stage` whose backward completes the bucket: a backward goes from the last operator to the first, so
/// a tensor is complete at its first use. -1: the stage uses none of the tensors.
OpId completing_op(const Graph& graph, const Bucket& bucket, const ProgramStage& stage);

}  // namespace millrace
