// The machine that the file of another planner carries, as a cluster (INTERFACES 9, `cluster: model`).
#pragma once

#include <optional>

#include "cluster/cluster.h"
#include "graph/graph.h"

namespace millrace::planner {

/// What an experiment says instead of the file.
struct CarriedChanges {
  std::optional<int> devices{};               ///< dnn-partitioning: accelerators; Piper: devices
  std::optional<Bytes> memory{};              ///< of each of those
  std::optional<BytesPerSecond> bandwidth{};  ///< of the link that all share

  bool operator==(const CarriedChanges&) const = default;
};

/// dnn-partitioning: accelerators called "accelerator", then CPU cores called "cpu", whose memory is not limited, on
/// links without cost (the file's transfers have costs of their own). Piper: its devices, memory and bandwidth.
/// \throws InvalidInput  when the graph carries no machine.
cluster::Cluster carried_cluster(const Graph& graph, const CarriedChanges& changes);

}  // namespace millrace::planner
