// The long form of a cluster: kinds of devices, nodes that hold them, and the network between.
#pragma once

#include <optional>
#include <string>

#include "cluster/cluster.h"
#include "config/reader.h"

namespace millrace::cluster {

/// Reads `devices`, `nodes` and `network` from the map that `reader` is at.
std::optional<Cluster> read_long_form(config::Reader& reader, const std::string& name);

/// `{bandwidth: …, latency: …}`; latency defaults to 0.
Link read_link(config::Reader& reader);

}  // namespace millrace::cluster
