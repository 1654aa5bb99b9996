// Checkpoints hold whole tensors under any plan: optimizer state that the owners of a bucket keep in parts is put
// together before it is written.
#pragma once

#include <vector>

#include "comm/transport.h"
#include "runtime/checkpoint_parts.h"

namespace millrace::runtime {

/// Adds to `whole` the tensors that this rank writes and whose state it has a part of. Collective over the owners of
/// each bucket; one bucket's state is in memory twice at a time.
void gather_shards(const Graph& graph, const std::vector<Bucket>& buckets, const std::vector<LocalStage>& stages,
                   comm::Transport& transport, comm::WaitObserver& observer, WholeTensors& whole);

}  // namespace millrace::runtime
