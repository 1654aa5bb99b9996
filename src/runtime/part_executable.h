// The part of a tensor-parallel stage that a rank computes, seen as the stage of the whole graph that it is a part of.
#pragma once

#include <memory>

#include "kernels/device.h"
#include "plan/stage_parts.h"
#include "runtime/part_group.h"

namespace millrace::runtime {

/// Operators of the parts that run again where those of the whole graph do; ascending, as these are.
std::vector<OpId> part_recompute(const StageParts& parts, const std::vector<OpId>& whole);

/// Tensors at the border are whole, so callers see no difference: tensors and operators are those of `whole`.
/// \param parameters  of the part. All references outlive what is made.
std::unique_ptr<kernels::Executable> compile_part(const StageParts& parts, const Graph& whole, PartGroup& group,
                                                  kernels::Device& device, kernels::StageParameters& parameters,
                                                  kernels::CompileOptions options);

}  // namespace millrace::runtime
