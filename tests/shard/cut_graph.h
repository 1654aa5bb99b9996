// Everything that a test of sharding needs around one graph: letters, extents, a mesh and its links.
#pragma once

#include <utility>
#include <vector>

#include "cluster/cluster.h"
#include "shard/propagate.h"
#include "shard/sharded_graph.h"

namespace millrace::shard::testing {

/// `devices` equal ones on one link: 1 GB/s, 10 us.
inline cluster::Cluster flat_cluster(int devices) {
  const auto count = static_cast<std::size_t>(devices);
  cluster::Device device{.name = "device", .flops = {{"fp32", FlopsPerSecond(1e12)}}};
  device.bandwidth = BytesPerSecond(1e11);
  return cluster::Cluster("flat", cluster::Kind::described, std::vector<cluster::Device>(count, device),
                          std::vector<int>(count, 0), {{"node", {BytesPerSecond(1e9), Seconds(1e-5)}}}, {});
}

struct CutGraph {
  CutGraph(const Graph& of, std::int64_t rows, std::vector<Axis> axes)
      : graph(of), ops(of), tensors(of, ops, rows), mesh(std::move(axes)), links(mesh, flat_cluster(mesh.size())) {}

  /// All tensors replicated, every operator whole.
  Decision whole() const {
    Decision decision;
    Placement placement{};
    for (int axis = 0; axis < mesh.axis_count(); ++axis) placement[static_cast<std::size_t>(axis)] = kReplicated;
    decision.placements.assign(graph.tensors().size(), placement);
    decision.origins.resize(graph.tensors().size());
    decision.uses.resize(static_cast<std::size_t>(graph.size()));
    return decision;
  }

  /// Whether all operands of the operator can be cut by these signatures.
  bool fits(OpId op, const Uses& uses) const {
    for (std::size_t i = 0; i < ops.operands(op).size(); ++i) {
      const TensorView view = tensors.view(ops.operands(op)[i].tensor);
      if (!shard::fits(view, placement(ops, op, i, uses, mesh.axis_count()), mesh)) return false;
    }
    return true;
  }

  ShardedGraph expand(Decision decision, ExpandOptions options = {}) const {
    return shard::expand(graph, ops, tensors, mesh, links, std::move(decision), options);
  }

  ShardedGraph propagate(const std::vector<Given>& given, ExpandOptions options = {}) const {
    return expand(shard::propagate(graph, ops, tensors, mesh, links, given), options);
  }

  Given given(const char* tensor, Property property, int axis = 0) const {
    return {graph.find_tensor(tensor), axis, property, 0};
  }

  const Graph& graph;
  OpTable ops;
  TensorTable tensors;
  Mesh mesh;
  MeshLinks links;
};

}  // namespace millrace::shard::testing
