// The cluster files that come with millrace.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace millrace::app {

/// Of `experiments/clusters` in the working directory, or above the program; else of `share/millrace/clusters` where
/// the program is installed. By name.
std::vector<std::filesystem::path> shipped_clusters();

/// The one of that name, with or without `.yaml`.
std::optional<std::filesystem::path> shipped_cluster(const std::string& name);

}  // namespace millrace::app
