// What the runtime executes of what programs can say.
#pragma once

#include "kernels/precision.h"
#include "program/program.h"

namespace millrace::runtime {

/// \param clip_norm  of the gradients; 0: off.
/// \throws InvalidInput  tensor-parallel stages whose parts are not known or whose tensors are bf16, and forwards that
/// lag, which are planned and simulated, not run; and
///                       clipping where updates do not wait for the norm.
void require_supported(const Program& program, kernels::Precision precision, double clip_norm = 0);

}  // namespace millrace::runtime
