// Reads a conv2d operator's sizes from the graph.
#include "kernels/onednn/convolution_shape.h"

namespace millrace::kernels::onednn {

ConvolutionShape convolution_shape(const Graph& graph, const Operator& op, std::int64_t rows) {
  const Dims& source = graph.tensor(op.inputs[0]).shape.dims;
  const Dims& destination = graph.tensor(op.outputs[0]).shape.dims;
  const Dims& weights = graph.tensor(op.parameters[0]).shape.dims;
  return {{rows, source[0], source[1], source[2]},
          weights,
          {rows, destination[0], destination[1], destination[2]},
          op.attributes.integers("stride"),
          op.attributes.integers("padding"),
          op.attributes.boolean("bias")};
}

}  // namespace millrace::kernels::onednn
