// Which real numbers take four bytes also where the precision of the run has two (bf16).
#pragma once

#include <cstdint>

#include "graph/tensor.h"

namespace millrace {

/// All but what operators read from the data and hand on: parameters, buffers and labels, and what is one number a
/// sample, as losses are.
inline bool is_wide(const Tensor& tensor) {
  const bool handed_on = tensor.role == Role::activation || tensor.role == Role::input;
  return !handed_on || tensor.shape.dims.empty();
}

/// Of wide numbers, and of those that operators keep beside tensors.
constexpr std::int64_t wide_bytes(std::int64_t real_bytes) { return real_bytes < 4 ? 4 : real_bytes; }

}  // namespace millrace
