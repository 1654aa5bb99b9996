// The part of a tensor-parallel stage on a device that computes nothing: kernels and collectives take modelled time.
#pragma once

#include <memory>

#include "kernels/device.h"
#include "plan/stage_parts.h"
#include "runtime/part_group.h"

namespace millrace::runtime {

/// Walks the operators of the part as the stage executor does: what changes hands is waited for where that waits, and
/// weight gradients pass beside it where it computes them meanwhile. Times are those that `device` has for operators
/// of the whole graph on this rank, sizes those of the part.
/// \param stage  of the whole graph. All references outlive what is made.
std::unique_ptr<kernels::Executable> compile_emulated_part(const StageParts& parts, const StageGraph& stage,
                                                           PartGroup& group, kernels::Device& device,
                                                           kernels::StageParameters& parameters,
                                                           const kernels::CompileOptions& options);

}  // namespace millrace::runtime
