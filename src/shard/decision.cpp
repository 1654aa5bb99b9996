// Signatures of several axes, read together.
#include "shard/decision.h"

namespace millrace::shard {

Placement placement(const OpTable& ops, OpId op, std::size_t operand, const Uses& uses, int axes) {
  Placement result{};
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(axes); ++axis) {
    result[axis] = ops.property(op, operand, uses[axis]);
  }
  return result;
}

}  // namespace millrace::shard
