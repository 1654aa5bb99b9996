// Keeps the factors of a linear layer's weight gradient, and makes parts of the gradient from them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "graph/factored_gradient.h"

namespace millrace::kernels {

/// Copies x and dy of some rows to where they belong among all.
template <class Real>
void keep_factors(const Real* x, const Real* dy, const FactoredShape& shape, std::int64_t rows, Real* to) {
  for (std::int64_t r = 0; r < rows; ++r, to += shape.width()) {
    std::copy_n(x + r * shape.inputs, shape.inputs, to);
    std::copy_n(dy + r * shape.outputs, shape.outputs, to + shape.inputs);
  }
}

/// The rows of dW = dYᵀ · X for `count` outputs from `first` on, from all rows of the factors. They are added up in
/// their order, whatever the part is.
template <class Real>
void factored_product(const Real* factors, const FactoredShape& shape, std::int64_t first, std::int64_t count,
                      Real* part);

}  // namespace millrace::kernels
