// What a graph is at a glance: counts, sums, depth and width, and the machine that its file carries.
#pragma once

#include <cstdint>
#include <string>

#include "graph/graph.h"

namespace millrace::import {

struct Summary {
  std::int64_t operators = 0;
  std::int64_t edges = 0;  ///< pairs of an output and an operator that reads it
  std::int64_t tensors = 0;
  std::int64_t parameters = 0;       ///< numbers; a tied tensor counts once
  std::int64_t parameter_bytes = 0;  ///< at 4 bytes a number, or as the file says
  double forward_s = 0;              ///< of one sample, over the operators with explicit figures
  double backward_s = 0;
  double flops = 0;               ///< forward, of one sample, over the other operators
  std::int64_t depth = 0;         ///< operators on the longest path
  std::int64_t width = 0;         ///< operators at one depth, at most: the widest antichain has at least as many
  std::string without_kernels{};  ///< the first operator that can not be trained; empty: there is none
  std::string machine{};          ///< what the file says of devices, memory and links; empty: nothing
};

Summary summarize(const Graph& graph);

}  // namespace millrace::import
