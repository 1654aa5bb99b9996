// The cluster files that come with millrace.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace millrace::app {

/// Of `experiments/clusters` in the working directory, above the program, where it is installed
/// (`share/millrace/experiments/clusters`), or in the source tree; the first that there is. By name.
std::vector<std::filesystem::path> shipped_clusters();

/// The one of that name, with or without `.yaml`.
std::optional<std::filesystem::path> shipped_cluster(const std::string& name);

}  // namespace millrace::app
