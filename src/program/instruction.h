// What a rank does, one step at a time (METHODS 4). The simulator and the runtime both interpret these.
#pragma once

#include <cstdint>
#include <string_view>

namespace millrace {

enum class InstructionKind : std::uint8_t {
  forward,
  backward,  ///< gradients of inputs and of weights together
  backward_input,
  backward_weight,
  receive_activation,  ///< waits for a transfer that was posted ahead
  send_activation,     ///< starts without blocking; its buffer frees when it is matched
  receive_gradient,
  send_gradient,
  reduce_gradients,  ///< starts the all-reduce of a bucket over its owners
  reduce_norm,       ///< the global gradient norm, over all ranks
  update_weights     ///< waits for the bucket's reduction, then the optimizer step
};

/// "forward", "send_activation", …
std::string_view name(InstructionKind kind);

/// One instruction of a rank program. Fields that a kind does not use are -1.
struct Instruction {
  InstructionKind kind = InstructionKind::forward;
  std::int32_t stage = -1;        ///< index in Program::stages
  std::int32_t micro_batch = -1;  ///< within the stage's pipeline
  std::int32_t transfer = -1;     ///< index in Program::transfers: sends and receives
  std::int32_t bucket = -1;       ///< index in Program::buckets: reduce_gradients, update_weights

  bool operator==(const Instruction&) const = default;
};

}  // namespace millrace
