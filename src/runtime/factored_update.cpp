// One part after the other through the same room.
#include "runtime/factored_update.h"

#include <algorithm>
#include <cmath>

#include "runtime/update_loops.h"

namespace millrace::runtime {

FactoredUpdate update_factored(kernels::StageParameters& parameters, std::size_t position, Optimizer& optimizer,
                               const UpdateScalars& scalars) {
  const FactoredShape& shape = parameters.factors(position);
  const std::int64_t each = shape.outputs_of_part();
  FactoredUpdate done;
  for (std::int64_t first = 0; first < shape.outputs; first += each) {
    const std::int64_t count = std::min(each, shape.outputs - first);
    const ElementRange part{first * shape.inputs, (first + count) * shape.inputs};
    const void* const gradient = parameters.make_gradient_part(position, first, count);
    const double squares = parameters.precision() == kernels::Precision::fp64
                               ? sum_of_squares(static_cast<const double*>(gradient), part.size())
                               : sum_of_squares(static_cast<const float*>(gradient), part.size());
    if (!std::isfinite(squares)) {
      done.finite = false;
      continue;
    }
    done.squares += squares;
    optimizer.update_part(position, part, gradient, scalars);
  }
  return done;
}

}  // namespace millrace::runtime
