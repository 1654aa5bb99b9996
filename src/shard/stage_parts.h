// What each device of a stage computes, cut from the whole graph by a decision.
#pragma once

#include <span>

#include "plan/stage_parts.h"
#include "shard/decision.h"
#include "shard/mesh.h"
#include "shard/op_table.h"
#include "shard/tensor_table.h"

namespace millrace::shard {

/// The parts of one set of operators under a decision. \param mesh  of one axis.
/// \throws InvalidInput  a parameter that two operators need in different parts.
StageParts cut_stage(const Graph& graph, std::span<const OpId> stage, const OpTable& ops, const TensorTable& tensors,
                     const Mesh& mesh, const Decision& decision);

}  // namespace millrace::shard
