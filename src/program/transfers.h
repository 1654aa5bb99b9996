// The messages between stages: every tensor straight from its producer to each consuming stage, cut by rows.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"
#include "program/program.h"

namespace millrace {

/// One tensor on its way from the stage that computes it to another that reads it, and its gradient's way back.
struct Crossing {
  TensorId tensor = -1;
  std::int32_t producer = -1;  ///< indices in Program::stages
  std::int32_t consumer = -1;
  bool has_activation = true;  ///< false: another stage on the consumer's ranks has received it
  bool has_gradient = false;
  /// Transfers of micro-batch k: Program::transfers[activations[k] .. activations[k + 1]), and alike for gradients.
  std::vector<std::int32_t> activations;
  std::vector<std::int32_t> gradients;
};

/// All crossings and, by stage, which of them it takes part in, in the order in which its messages are listed.
struct Crossings {
  std::vector<Crossing> all;
  std::vector<std::vector<std::int32_t>> into;               ///< as consumer: by tensor
  std::vector<std::vector<std::int32_t>> out_of;             ///< as producer: by tensor, then consumer
  std::vector<std::vector<std::int32_t>> gradients_back_to;  ///< as producer: by tensor, then consumer, latest first
};

/// Finds the crossings of program.stages and appends their messages, without tags, to program.transfers. Each pair of
/// ranks with rows in common exchanges exactly those (METHODS 4); an empty interval makes no message.
/// Gradients only where `program.training`.
Crossings add_transfers(const Graph& graph, Program& program);

}  // namespace millrace
