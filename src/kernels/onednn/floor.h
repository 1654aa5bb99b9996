// The time below which no kernels can bring a training step: that of its products and convolutions alone.
#pragma once

#include <cstdint>

#include "graph/graph.h"

namespace millrace::kernels::onednn {

/// Seconds of processor time of one step of `rows` samples: of every product of linear layers, attention and
/// batch_matmul and every pass of convolutions, each by the fastest of oneDNN's calls for its shape, on tensors that
/// lie as it likes them. What can be made again is counted once. On as many threads as OpenMP gives. 0 without such
/// work.
double floor_seconds(const Graph& graph, std::int64_t rows);

}  // namespace millrace::kernels::onednn
