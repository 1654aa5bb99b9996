// Names of the instruction kinds, as logs, traces and tables write them.
#include "program/instruction.h"

#include <array>
#include <cstddef>

namespace millrace {

std::string_view name(InstructionKind kind) {
  static constexpr std::array<std::string_view, 20> kNames{
      "forward",         "backward",         "backward_input", "backward_weight",  "receive_activation",
      "send_activation", "receive_gradient", "send_gradient",  "reduce_gradients", "reduce_norm",
      "update_weights",  "recompute",        "all_reduce",     "all_gather",       "reduce_scatter",
      "all_to_all",      "stash_weights",    "load_weights",   "drop_stash",       "gather_weights"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace millrace
