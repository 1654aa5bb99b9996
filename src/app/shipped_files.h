// The files that come with millrace: clusters and data.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace millrace::app {

/// A file or folder by its path in the source tree, looked up in the working directory, above the program, where it is
/// installed (`share/millrace`), and in the source tree; none where it is nowhere.
std::optional<std::filesystem::path> shipped_file(const std::filesystem::path& path);

/// Those of the folder `experiments/clusters`, by name.
std::vector<std::filesystem::path> shipped_clusters();

/// The one of that name, with or without `.yaml`.
std::optional<std::filesystem::path> shipped_cluster(const std::string& name);

}  // namespace millrace::app
