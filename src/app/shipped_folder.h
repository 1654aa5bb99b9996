// Finds what ships beside the program: experiments, cluster files, lists of workloads.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

namespace millrace::app {

/// Where `part` ("experiments/clusters") is looked for, in this order: the working directory, beside and above the
/// program in a build or source tree, the share folder of an installation, the source tree that was built from.
std::vector<std::filesystem::path> shipped_places(const std::filesystem::path& part);

/// The first of them that exists.
std::optional<std::filesystem::path> find_shipped(const std::filesystem::path& part);

}  // namespace millrace::app
