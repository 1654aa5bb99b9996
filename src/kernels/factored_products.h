// Keeps the factors of a linear layer's weight gradient, and makes parts of the gradient from them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "graph/factored_gradient.h"

namespace millrace::kernels {

/// Copies x and dy of some rows to where they belong among all. `copy(from, to, count)` may widen them.
template <class Stored, class Real, class Copy>
void keep_factors(const Stored* x, const Stored* dy, const FactoredShape& shape, std::int64_t rows, Real* to,
                  Copy copy) {
  for (std::int64_t r = 0; r < rows; ++r, to += shape.width()) {
    copy(x + r * shape.inputs, to, shape.inputs);
    copy(dy + r * shape.outputs, to + shape.inputs, shape.outputs);
  }
}
template <class Real>
void keep_factors(const Real* x, const Real* dy, const FactoredShape& shape, std::int64_t rows, Real* to) {
  keep_factors(x, dy, shape, rows, to,
               [](const Real* from, Real* into, std::int64_t count) { std::copy_n(from, count, into); });
}

/// The rows of dW = dYᵀ · X for `count` outputs from `first` on, from all rows of the factors. They are added up in
/// their order, whatever the part is.
template <class Real>
void factored_product(const Real* factors, const FactoredShape& shape, std::int64_t first, std::int64_t count,
                      Real* part);

}  // namespace millrace::kernels
