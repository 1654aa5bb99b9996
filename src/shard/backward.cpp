// Backward by transposition: every operator gives gradients as its signature says, and each is brought into the
// placement in which the producer of its tensor takes it. So an all-gather becomes a reduce-scatter, and a tensor that
// was read whole by operators that computed parts is reduced once.
#include <algorithm>

#include "shard/costs.h"
#include "shard/expansion.h"
#include "shard/index.h"

namespace millrace::shard {
namespace {

class Backward {
 public:
  explicit Backward(Expansion& work)
      : work_(work), given_(work.graph.tensors().size()), last_user_(work.graph.tensors().size(), -1) {
    for (auto op = static_cast<OpId>(work.graph.size()); op-- > 0;) {
      for (const TensorId parameter : work.graph.op(op).parameters) last_user_[index(parameter)] = op;
    }
  }

  void run() {
    work_.result.parameter_gradients.assign(given_.size(), -1);
    for (auto op = static_cast<OpId>(work_.graph.size()); op-- > 0;) add(op);
  }

 private:
  Placement kept(const Placement& placement) const {
    Placement result{};
    for (int axis = 0; axis < work_.mesh.axis_count(); ++axis) {
      result[index(axis)] = gradient_kept(placement[index(axis)]);
    }
    return result;
  }

  Placement given(OpId op, std::size_t operand) const {
    const Uses& uses = work_.result.decision.uses[index(op)];
    const Placement placement = work_.operand_placement(op, operand);
    Placement result{};
    for (int axis = 0; axis < work_.mesh.axis_count(); ++axis) {
      result[index(axis)] = gradient_of(placement[index(axis)], uses[index(axis)]);
    }
    return result;
  }

  void add(OpId op) {
    const auto operands = work_.ops.operands(op);
    Instruction compute{.kind = Instruction::Kind::compute, .op = op};
    bool reached = false;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const bool seed = op == work_.graph.loss() && operands[i].side == Side::output &&
                        operands[i].tensor == work_.graph.op(op).outputs.front();
      ValueId value = -1;
      if (operands[i].side == Side::output) {
        const Placement wanted = kept(work_.operand_placement(op, i));
        value = seed ? work_.value(operands[i].tensor, wanted, true) : total(operands[i].tensor, wanted, op + 1, false);
        reached = reached || value >= 0;
      }
      compute.values.push_back(value);
    }
    if (!reached) return;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].side == Side::output || !has_gradient(work_.graph, operands[i])) continue;
      compute.values[i] = work_.value(operands[i].tensor, given(op, i), true);
      given_[index(operands[i].tensor)].push_back(compute.values[i]);
    }
    compute.inner = work_.inner(op, false);
    work_.result.backward.push_back(std::move(compute));
    for (const TensorId parameter : work_.graph.op(op).parameters) {
      ValueId& reduced = work_.result.parameter_gradients[index(parameter)];
      if (last_user_[index(parameter)] != op || reduced >= 0) continue;
      reduced = total(parameter, kept(work_.result.decision.placements[index(parameter)]), op, true);
    }
  }

  // Sums what the readers gave: what is alike first, so that it is converted once.
  ValueId total(TensorId tensor, const Placement& wanted, OpId behind, bool per_iteration) {
    std::vector<ValueId> open = std::move(given_[index(tensor)]);
    std::vector<ValueId> ready;
    while (!open.empty()) {
      const Placement placement = work_.result.values[index(open.front())].placement;
      std::vector<ValueId> alike;
      const auto rest = std::stable_partition(open.begin(), open.end(), [&](ValueId value) {
        return work_.result.values[index(value)].placement == placement;
      });
      alike.assign(open.begin(), rest);
      open.erase(open.begin(), rest);
      const ValueId together = sum(tensor, alike, behind);
      const auto steps = conversion(work_.tensors.view(tensor), placement, wanted, work_.mesh);
      ready.push_back(work_.convert(work_.result.backward, together, steps, behind, per_iteration, nullptr));
    }
    return ready.empty() ? -1 : sum(tensor, ready, behind);
  }

  ValueId sum(TensorId tensor, const std::vector<ValueId>& values, OpId behind) {
    if (values.size() == 1) return values.front();
    Instruction one{.kind = Instruction::Kind::add, .op = behind, .values = values};
    one.to = work_.value(tensor, work_.result.values[index(values.front())].placement, true);
    work_.result.backward.push_back(one);
    return one.to;
  }

  Expansion& work_;
  std::vector<std::vector<ValueId>> given_;  // by tensor: gradients that readers gave and nobody took yet
  std::vector<OpId> last_user_;              // by parameter: the last operator whose backward adds to it
};

}  // namespace

void add_backward(Expansion& work) { Backward(work).run(); }

}  // namespace millrace::shard
