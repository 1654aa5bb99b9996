// The short forms of a cluster: equal devices on one link, or on a link for each level.
#pragma once

#include <optional>
#include <string>

#include "cluster/cluster.h"
#include "config/reader.h"

namespace millrace::cluster {

/// Reads `flat` or `levels`, and `speeds`, from the map that `reader` is at. \pre it has one of the two.
std::optional<Cluster> read_short_form(config::Reader& reader, const std::string& name);

}  // namespace millrace::cluster
