// Forward: each operand is brought into the placement that its operator takes.
#include "shard/sharded_graph.h"

#include <algorithm>

#include "shard/expansion.h"

namespace millrace::shard {
namespace {

StepCost sum(const std::vector<Instruction>& list, bool per_iteration) {
  StepCost all;
  for (const Instruction& one : list) {
    if (one.per_iteration != per_iteration) continue;
    all += one.cost;
    for (const InnerReduction& inner : one.inner) all += inner.cost;
  }
  return all;
}

class Forward {
 public:
  explicit Forward(Expansion& work) : work_(work), of_tensor_(work.graph.tensors().size()) {}

  void run() {
    ShardedGraph& result = work_.result;
    result.kept.assign(of_tensor_.size(), -1);
    for (TensorId id = 0; id < static_cast<TensorId>(of_tensor_.size()); ++id) {
      if (work_.graph.tensor(id).producer < 0) first(id, result.decision.placements[static_cast<std::size_t>(id)]);
    }
    for (OpId op = 0; op < work_.graph.size(); ++op) add(op);
  }

 private:
  ValueId first(TensorId tensor, const Placement& placement) {
    const ValueId value = work_.value(tensor, placement, false);
    of_tensor_[static_cast<std::size_t>(tensor)].push_back(value);
    work_.result.kept[static_cast<std::size_t>(tensor)] = value;
    return value;
  }

  void add(OpId op) {
    Instruction compute{.kind = Instruction::Kind::compute, .op = op};
    const auto operands = work_.ops.operands(op);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Placement wanted = work_.operand_placement(op, i);
      compute.values.push_back(operands[i].side == Side::output ? first(operands[i].tensor, wanted)
                                                                : bring(operands[i].tensor, wanted, op - 1));
    }
    compute.inner = work_.inner(op, true);
    work_.result.forward.push_back(std::move(compute));
  }

  // The tensor in the placement that is wanted: as it is there already, or from what costs least.
  ValueId bring(TensorId tensor, const Placement& wanted, OpId behind) {
    std::vector<ValueId>& there = of_tensor_[static_cast<std::size_t>(tensor)];
    std::vector<Step> best;
    ValueId source = -1;
    Seconds least{};
    for (const ValueId value : there) {
      const Placement& placement = work_.result.values[static_cast<std::size_t>(value)].placement;
      if (placement == wanted) return value;
      std::vector<Step> steps = conversion(work_.tensors.view(tensor), placement, wanted, work_.mesh);
      const Seconds time = work_.time(tensor, steps);
      if (source < 0 || time < least) {
        best = std::move(steps);
        source = value;
        least = time;
      }
    }
    return work_.convert(work_.result.forward, source, best, behind, false, &there);
  }

  Expansion& work_;
  std::vector<std::vector<ValueId>> of_tensor_;
};

}  // namespace

StepCost ShardedGraph::per_micro_batch() const {
  StepCost all = sum(forward, false);
  return all += sum(backward, false);
}

StepCost ShardedGraph::once() const { return sum(backward, true); }

ShardedGraph expand(const Graph& graph, const OpTable& ops, const TensorTable& tensors, const Mesh& mesh,
                    const MeshLinks& links, Decision decision, const ExpandOptions& options) {
  Expansion work{graph, ops, tensors, mesh, links, options, {}};
  work.result.decision = std::move(decision);
  Forward(work).run();
  if (options.backward) add_backward(work);
  return std::move(work.result);
}

}  // namespace millrace::shard
