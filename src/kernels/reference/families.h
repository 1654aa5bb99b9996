// The makers of the reference kernels, one for each operator kind, and what they are made from.
#pragma once

#include <cstdint>
#include <memory>

#include "graph/graph.h"
#include "kernels/op_kernel.h"
#include "kernels/precision.h"

namespace millrace::kernels::reference {

/// What a kernel is made from; its constructor takes what it needs.
struct Setup {
  const Graph& graph;
  const Operator& op;
  std::int64_t rows;
  Precision precision;
  bool training;
  std::uint64_t seed;

  const Dims& input_dims(std::size_t i = 0) const { return graph.tensor(op.inputs[i]).shape.dims; }
  const Dims& output_dims(std::size_t i = 0) const { return graph.tensor(op.outputs[i]).shape.dims; }
};

/// Kernel<float> or Kernel<double>, made from `setup`.
template <template <class> class Kernel>
std::unique_ptr<OpKernel> make_in_precision(const Setup& setup) {
  if (setup.precision == Precision::fp64) return std::make_unique<Kernel<double>>(setup);
  return std::make_unique<Kernel<float>>(setup);
}

std::unique_ptr<OpKernel> make_add(const Setup& setup);
std::unique_ptr<OpKernel> make_attention(const Setup& setup);
std::unique_ptr<OpKernel> make_average_pool(const Setup& setup);
std::unique_ptr<OpKernel> make_batch_matmul(const Setup& setup);
std::unique_ptr<OpKernel> make_batch_norm(const Setup& setup);
std::unique_ptr<OpKernel> make_concat(const Setup& setup);
std::unique_ptr<OpKernel> make_conv2d(const Setup& setup);
std::unique_ptr<OpKernel> make_copy(const Setup& setup);  ///< reshape and flatten
std::unique_ptr<OpKernel> make_cross_entropy(const Setup& setup);
std::unique_ptr<OpKernel> make_dropout(const Setup& setup);
std::unique_ptr<OpKernel> make_embedding(const Setup& setup);
std::unique_ptr<OpKernel> make_gelu(const Setup& setup);
std::unique_ptr<OpKernel> make_global_average_pool(const Setup& setup);
std::unique_ptr<OpKernel> make_layer_norm(const Setup& setup);
std::unique_ptr<OpKernel> make_linear(const Setup& setup);
std::unique_ptr<OpKernel> make_max_pool(const Setup& setup);
std::unique_ptr<OpKernel> make_mean_squared_error(const Setup& setup);
std::unique_ptr<OpKernel> make_multiply(const Setup& setup);
std::unique_ptr<OpKernel> make_position_embedding(const Setup& setup);
std::unique_ptr<OpKernel> make_relu(const Setup& setup);
std::unique_ptr<OpKernel> make_segment_embedding(const Setup& setup);
std::unique_ptr<OpKernel> make_select(const Setup& setup);
std::unique_ptr<OpKernel> make_softmax(const Setup& setup);
std::unique_ptr<OpKernel> make_tanh(const Setup& setup);
std::unique_ptr<OpKernel> make_transpose(const Setup& setup);

}  // namespace millrace::kernels::reference
