// The collectives of tensor-parallel stages, as their parts say.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "program/program.h"

namespace millrace {

/// What brings a tensor from one holding to another; none: every rank has what it takes.
std::optional<InstructionKind> collective_of(const Holding& from, const Holding& to);

/// Logical bytes of one row that the parts of cross-entropy reduce inside of it: four doubles a position and part.
std::int64_t class_bytes(const SplitOperator& one, int devices);

/// In the order of execution, stage by stage. \pre the stages have parts where they are tensor-parallel.
std::vector<TensorCollective> part_collectives(const std::vector<ProgramStage>& stages);

/// Into how many parts a stage's replicas cut a parameter or buffer: 1 where each rank holds the whole. Stages whose
/// parts are not known cut all.
int shards_of(const ProgramStage& stage, TensorId parameter);

}  // namespace millrace
