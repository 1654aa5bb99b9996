// Refuses labels and tokens that lie outside their table, before they are read past its end.
#pragma once

#include <cstdint>

#include <fmt/format.h>

#include "base/errors.h"
#include "graph/graph.h"

namespace millrace::kernels::reference {

/// `index`, checked. \throws RunFailed  naming the operator and the sample's row, when it is not in [0, bound).
inline std::int64_t checked_index(std::int32_t index, std::int64_t bound, const Operator& op, std::int64_t row) {
  if (index < 0 || index >= bound) {
    throw RunFailed(fmt::format("operator '{}': row {} of the micro-batch holds index {}; allowed: 0 to {}", op.name,
                                row, index, bound - 1));
  }
  return index;
}

}  // namespace millrace::kernels::reference
