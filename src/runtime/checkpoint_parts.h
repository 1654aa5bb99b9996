// Checkpoints hold whole tensors under any plan: what a replica holds in parts is put together before it is written.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "program/program.h"
#include "runtime/program_runner.h"

namespace millrace::runtime {

/// By tensor: the value, then what the optimizer keeps of it.
using WholeTensors = std::map<TensorId, std::vector<std::vector<std::byte>>>;

/// The tensors that `rank` writes and has a part of. Collective over the ranks of each replica.
WholeTensors gather_parts(const Graph& graph, const std::vector<Bucket>& buckets, const std::vector<LocalStage>& stages,
                          int rank);

}  // namespace millrace::runtime
