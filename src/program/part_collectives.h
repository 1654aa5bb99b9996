// The collectives of tensor-parallel stages, as their parts say.
#pragma once

#include <vector>

#include "program/program.h"

namespace millrace {

/// In the order of execution, stage by stage. \pre the stages have parts where they are tensor-parallel.
std::vector<TensorCollective> part_collectives(const Graph& graph, const std::vector<ProgramStage>& stages);

/// Into how many parts a stage's replicas cut a parameter or buffer: 1 where each rank holds the whole. Stages whose
/// parts are not known cut all.
int shards_of(const ProgramStage& stage, TensorId parameter);

}  // namespace millrace
