// What the kernels of this device are made from, and typed access to the buffers of a call.
#pragma once

#include <cstdint>
#include <memory>

#include "graph/graph.h"
#include "kernels/onednn/dnnl_api.h"
#include "kernels/op_kernel.h"

namespace millrace::kernels::onednn {

/// The place of one operator in its stage.
struct Site {
  const Graph& graph;
  const Operator& op;
  std::int64_t rows;
  bool training;
  std::uint64_t seed;
  int threads;  ///< that its loops use
  const Engine& engine;
  int block;  ///< channels of a block in its images (8, 16), 0 where they are plain

  const Dims& input_dims(std::size_t i = 0) const { return graph.tensor(op.inputs[i]).shape.dims; }
  const Dims& output_dims(std::size_t i = 0) const { return graph.tensor(op.outputs[i]).shape.dims; }
  /// Elements of all rows, with the zeros that fill up blocks.
  std::int64_t input_elements(std::size_t i = 0) const { return elements(input_dims(i)); }
  std::int64_t output_elements(std::size_t i = 0) const { return elements(output_dims(i)); }

 private:
  std::int64_t elements(const Dims& dims) const {
    if (block == 0) return rows * element_count(dims);
    return rows * padded(dims[0], block) * dims[1] * dims[2];
  }
};

inline const float* input(const OpCall& call, std::size_t i = 0) { return static_cast<const float*>(call.inputs[i]); }
inline const std::int32_t* indices(const OpCall& call, std::size_t i = 0) {
  return static_cast<const std::int32_t*>(call.inputs[i]);
}
inline float* output(const OpCall& call, std::size_t i = 0) { return static_cast<float*>(call.outputs[i]); }
inline const float* parameter(const OpCall& call, std::size_t i) {
  return static_cast<const float*>(call.parameters[i]);
}
inline const float* buffer(const OpCall& call, std::size_t i) { return static_cast<const float*>(call.buffers[i]); }
inline const float* output_gradient(const OpCall& call) { return static_cast<const float*>(call.output_gradients[0]); }
inline float* input_gradient(const OpCall& call, std::size_t i = 0) {
  return static_cast<float*>(call.input_gradients[i]);
}
inline float* parameter_gradient(const OpCall& call, std::size_t i) {
  return static_cast<float*>(call.parameter_gradients[i]);
}
inline float* buffer_gradient(const OpCall& call, std::size_t i) {
  return static_cast<float*>(call.buffer_gradients[i]);
}
inline float* extra(const OpCall& call) { return static_cast<float*>(call.extra); }
inline float* scratch(const OpCall& call) { return static_cast<float*>(call.scratch); }

/// Bytes rounded up so that what follows starts on a cache line.
constexpr std::int64_t aligned(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

inline constexpr std::int64_t kFloatBytes = 4;

}  // namespace millrace::kernels::onednn
