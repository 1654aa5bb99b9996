// The stage executor that all devices share: plans the memory of a compiled stage and calls its kernels in order.
#pragma once

#include <memory>

#include "kernels/device.h"
#include "kernels/kernel_factory.h"

namespace millrace::kernels {

/// Makes a kernel of each operator of `stage` and allocates all memory at once. Contributions to the gradient of a
/// tensor with several readers are added in descending operator order, starting from the gradient that comes from
/// outside where the tensor also leaves the stage: what later operators contribute comes first wherever the cut lies.
/// `parameters` must outlive the executable, `stage.graph` too.
std::unique_ptr<Executable> make_stage_executable(const StageGraph& stage, StageParameters& parameters,
                                                  const CompileOptions& options,
                                                  std::unique_ptr<KernelFactory> factory);

}  // namespace millrace::kernels
