// The sizes of a conv2d operator in oneDNN's terms.
#pragma once

#include <cstdint>

#include "graph/graph.h"
#include "kernels/onednn/dnnl_api.h"

namespace millrace::kernels::onednn {

ConvolutionShape convolution_shape(const Graph& graph, const Operator& op, std::int64_t rows);

}  // namespace millrace::kernels::onednn
