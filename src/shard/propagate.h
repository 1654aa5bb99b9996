// Property propagation: from a few annotated tensors to the placement of every tensor and the signature of every
// operator (METHODS 7).
#pragma once

#include <cstdint>
#include <vector>

#include "shard/decision.h"
#include "shard/mesh.h"
#include "shard/reshard.h"
#include "shard/tensor_table.h"

namespace millrace::shard {

/// One property that is given: of `tensor` on `axis`, by annotation number `annotation`.
struct Given {
  TensorId tensor = -1;
  int axis = 0;
  Property property;
  std::int32_t annotation = -1;
};

/// Given tensors never change. Properties go from unset to set once, so the work ends; ties are broken by order, so the
/// result is the same on every run. \pre each (tensor, axis) is given at most once and fits.
Decision propagate(const Graph& graph, const OpTable& ops, const TensorTable& tensors, const Mesh& mesh,
                   const MeshLinks& links, const std::vector<Given>& given);

}  // namespace millrace::shard
