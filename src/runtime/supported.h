// What the runtime executes of what programs can say.
#pragma once

#include "program/program.h"

namespace millrace::runtime {

/// \throws InvalidInput  a rank with several stages, tensor-parallel stages, recomputation, or updates that do not wait
///                       for the norm (asynchronous schedules): those are planned and simulated, not run.
void require_supported(const Program& program);

}  // namespace millrace::runtime
