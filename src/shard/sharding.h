// From a graph, a mesh and annotations (or none) to the per-device graph, with what it costs and holds.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cost/cost_model.h"
#include "shard/annotations.h"
#include "shard/memory.h"
#include "shard/sharded_graph.h"

namespace millrace::shard {

struct Request {
  std::vector<Axis> axes;
  std::vector<Annotation> annotations;  ///< none: the automatic choice
  std::int64_t rows = 1;                ///< of a micro-batch, over the whole mesh
  std::int64_t micro_batches = 1;
  std::int64_t real_bytes = 4;
  HeldOptions held{};      ///< what has to fit into the memory of the devices
  bool split_rows = true;  ///< whether the batch may be cut
  ExpandOptions expand{};
};

/// The graph and everything that was made for it; `graph` must outlive it.
struct Sharded {
  const Graph* graph = nullptr;
  std::unique_ptr<const OpTable> ops{};
  std::unique_ptr<const TensorTable> tensors{};
  std::unique_ptr<const Mesh> mesh{};
  std::unique_ptr<const MeshLinks> links{};
  std::vector<Annotation> annotations{};
  ShardedGraph cut{};
  std::vector<Bytes> memory{};  ///< of each device: weights, gradients, optimizer state, outputs of a micro-batch
  bool automatic = false;
  bool exact = true;  ///< of the automatic choice: nothing was pruned
  bool fits = true;   ///< every device holds its part
};

/// \throws InvalidInput  a mesh that the cluster does not hold, faults of annotations (all of them, one a line).
Sharded shard(const Graph& graph, const cluster::Cluster& cluster, const cost::CostModel& cost, const Request& request);

/// Weights of the parts of an axis that follow speed, where devices differ; empty where they do not. Speed is the
/// inverse of the time of the whole graph on the slowest device of each place.
/// \param spare  bytes that each place of the axis can hold of what is split, of `split_bytes` in all; empty: no limit
std::vector<double> balanced_ratio(const std::vector<double>& speeds, const std::vector<double>& spare,
                                   double split_bytes);

}  // namespace millrace::shard
