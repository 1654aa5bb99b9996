// What operators hold and move: outputs, parameters, what backward keeps, and the memory traffic of a forward.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "graph/graph.h"

namespace millrace {

// Real elements take `real_bytes` (2, 4 or 8), wide ones (graph/width.h) at least 4; indices are 32-bit.

/// One sample of a batched tensor; the whole of a parameter or buffer.
Bytes tensor_bytes(const Tensor& tensor, std::int64_t real_bytes);

/// Trained numbers of a parameter; where only its bytes are known, those of 32-bit reals.
std::int64_t parameter_elements(const Tensor& tensor);

/// What the backward of `ops` together keeps from their forward.
struct SavedTensors {
  std::vector<TensorId> tensors;  ///< batched tensors (activations, inputs, labels), each once, ascending
  std::int64_t extra_reals_per_sample = 0;
  std::int64_t extra_reals_per_micro_batch = 0;
  Bytes extra_per_sample{};  ///< what `cost` operators say that they keep
};
SavedTensors saved_tensors(const Graph& graph, std::span<const OpId> ops);

/// The bytes of that for one sample; a tensor that two operators read counts once. What is kept per micro-batch
/// (batch statistics) is left out.
Bytes saved_bytes_per_sample(const Graph& graph, std::span<const OpId> ops, std::int64_t real_bytes);

/// All outputs of one operator.
Bytes output_bytes_per_sample(const Graph& graph, OpId op, std::int64_t real_bytes);

/// Parameters that `ops` use; tied tensors once.
Bytes parameter_bytes(const Graph& graph, std::span<const OpId> ops, std::int64_t real_bytes);

/// Bytes read and written at least: every operand once. A forward of r rows moves r · per_sample + per_call.
struct Traffic {
  Bytes per_sample;  ///< inputs and outputs
  Bytes per_call;    ///< parameters and buffers
};
Traffic forward_traffic(const Graph& graph, OpId op, std::int64_t real_bytes);

/// Floating point operations of one sample.
OpFlops flops(const Graph& graph, OpId op);

}  // namespace millrace
