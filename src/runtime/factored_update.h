// The update of a weight whose gradient is kept as factors.
#pragma once

#include <cstddef>

#include "runtime/optimizer.h"

namespace millrace::runtime {

struct FactoredUpdate {
  double squares = 0;  ///< Σ g² of the parts that are finite
  bool finite = true;  ///< all of them are; the others are left as they were
};

/// Makes the gradient of the tensor at `position` of the storage order part by part and steps over each while it is in
/// the cache. \pre its values exist.
FactoredUpdate update_factored(kernels::StageParameters& parameters, std::size_t position, Optimizer& optimizer,
                               const UpdateScalars& scalars);

}  // namespace millrace::runtime
