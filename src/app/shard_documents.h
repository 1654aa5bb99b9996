// What `millrace shard` writes: one document of everything, the graph of a device, and a picture for Graphviz.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "shard/sharding.h"

namespace millrace::app {

/// "annotated: tensor 'x' split 0", "from blocks.0.mlp.up", "chosen", "".
std::string origin_text(const shard::Sharded& sharded, TensorId tensor, int axis);

/// "axis a" or "axes a, b" of a step.
std::string axes_text(const shard::Mesh& mesh, unsigned axes);

/// `{mesh, automatic, exact, fits, tensors[], operators[], collectives[], per_micro_batch, per_iteration,
/// memory_bytes[]}`.
nlohmann::json shard_document(const shard::Sharded& sharded);

/// What device `device` runs: `{device, coordinates, values[], forward[], backward[]}`, with local dimensions,
/// attributes and the group of each collective.
nlohmann::json device_document(const shard::Sharded& sharded, int device);

/// Operators as boxes, collectives as ellipses, edges with placements.
std::string graphviz(const shard::Sharded& sharded);

}  // namespace millrace::app
