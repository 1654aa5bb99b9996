// Runs a per-device graph on all devices of its mesh in one process, with the reference kernels: the oracle of
// sharding.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "shard/sharded_graph.h"

namespace millrace::shard::testing {

using Numbers = std::vector<double>;

/// Everything that the interpreter and the unsharded run are compared in, as whole tensors in row-major order.
struct Results {
  std::map<TensorId, Numbers> tensors;    ///< outputs of operators
  std::map<TensorId, Numbers> gradients;  ///< of activations and parameters
};

/// A graph cut over a mesh.
struct Sharding {
  const Graph& graph;
  const OpTable& ops;
  const TensorTable& tensors;
  const Mesh& mesh;
  const ShardedGraph& cut;
  bool synchronised_batch_norm = false;
};

/// Values of inputs, labels, parameters and buffers by tensor; fixed random numbers, indices below the vocabulary.
std::map<TensorId, Numbers> sources(const Graph& graph, std::int64_t rows);

/// The gradient that the backward starts from, of each sample's loss.
Numbers seed_gradient(std::int64_t rows);

Results run_whole(const Graph& graph, std::int64_t rows, const std::map<TensorId, Numbers>& given);
/// \throws std::logic_error  where copies of one value differ, or a step needs what its group does not hold.
Results run_sharded(const Sharding& sharding, const std::map<TensorId, Numbers>& given);

}  // namespace millrace::shard::testing
