// What is attached to a computation stands between it and the next one.
#include "program/attached.h"

namespace millrace {

bool is_computation(InstructionKind kind) {
  switch (kind) {
    case InstructionKind::forward:
    case InstructionKind::backward:
    case InstructionKind::backward_input:
    case InstructionKind::backward_weight:
    case InstructionKind::recompute:
      return true;
    default:
      return false;
  }
}

bool is_of_bucket(InstructionKind kind) {
  return kind == InstructionKind::reduce_gradients || kind == InstructionKind::update_weights ||
         kind == InstructionKind::gather_weights;
}

std::vector<std::size_t> attached_to(std::span<const Instruction> list, std::size_t position) {
  std::vector<std::size_t> found;
  for (std::size_t i = position + 1; i < list.size() && !is_computation(list[i].kind); ++i) {
    if (is_of_bucket(list[i].kind) && list[i].op >= 0) found.push_back(i);
  }
  return found;
}

}  // namespace millrace
