// A small network with skips, shared weights and many readers of one tensor, and how it is run cut into stages.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "kernels/device.h"

namespace millrace::kernels::testing {

/// x[6] → linear → relu ("b") → linear, added to b, [times b,] layer norm, dropout, linear → cross-entropy of 6
/// classes. The second and third linear share their weight. Nine or ten operators.
Graph skip_network(bool third_reader);

/// One micro-batch through stages of consecutive operators, by hand: border tensors and gradients are copied, and the
/// gradients that a tensor gets from several stages are summed from the last stage on.
struct PipelineRun {
  std::vector<double> loss;                              ///< by row
  std::map<std::string, std::vector<double>> gradients;  ///< by parameter name
};
PipelineRun run_pipeline(const Graph& graph, const std::vector<OpId>& cuts, Device& device, Precision precision,
                         std::int64_t rows, double shift = 0, const std::string& shifted = {},
                         std::size_t shifted_element = 0);

}  // namespace millrace::kernels::testing
