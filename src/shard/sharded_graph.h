// The per-device graph: the operators of the graph on parts of its tensors, with explicit collectives, forward and
// backward. Every device runs the same list; what it holds of each value follows from its place in the mesh.
#pragma once

#include <cstdint>
#include <vector>

#include "shard/decision.h"
#include "shard/reshard.h"
#include "shard/tensor_table.h"

namespace millrace::shard {

using ValueId = std::int32_t;  ///< position in ShardedGraph::values; -1 where there is none

/// A tensor, or the gradient of one, as the devices hold it at one point.
struct Value {
  TensorId tensor = -1;
  Placement placement{};
  bool gradient = false;
};

/// A reduction inside an operator: the maximum and sums of rows, or the statistics of a batch.
struct InnerReduction {
  unsigned axes = 0;
  std::int64_t elements = 0;  ///< of each device
  StepCost cost{};
};

struct Instruction {
  enum class Kind : std::uint8_t {
    compute,  ///< the operator, forward or backward
    convert,  ///< one value into another, by one step
    add       ///< gradients that several readers gave, into `to`
  };
  Kind kind = Kind::compute;
  /// The operator that computes, or behind whose part of the computation this stands; -1: before the first.
  OpId op = -1;
  /// Of compute: its operands as OpTable lists them. In backward, gradients of outputs are read, those of inputs and
  /// parameters written; -1 where there is none. Of add: what is added.
  std::vector<ValueId> values{};
  ValueId from = -1;
  ValueId to = -1;
  Step step{};
  StepCost cost{};
  bool per_iteration = false;  ///< once, after the last micro-batch: gradients of parameters
  std::vector<InnerReduction> inner{};
};

struct ShardedGraph {
  Decision decision;
  std::vector<Value> values;
  std::vector<Instruction> forward;
  std::vector<Instruction> backward;
  std::vector<ValueId> kept;                 ///< by tensor, as it is first there: parameters, inputs, outputs
  std::vector<ValueId> parameter_gradients;  ///< by tensor, reduced; -1 for other tensors

  /// Of all collectives: of one micro-batch, and once an iteration.
  StepCost per_micro_batch() const;
  StepCost once() const;
};

struct ExpandOptions {
  bool synchronised_batch_norm = false;  ///< statistics over all devices; else each part has its own
  bool backward = true;
};

/// Inserts what the decision needs: each conversion of a tensor once, from what costs least of what is there already.
ShardedGraph expand(const Graph& graph, const OpTable& ops, const TensorTable& tensors, const Mesh& mesh,
                    const MeshLinks& links, Decision decision, const ExpandOptions& options = {});

}  // namespace millrace::shard
