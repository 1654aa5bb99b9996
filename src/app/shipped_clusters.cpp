// Looks for the folder of cluster files, from the working directory and from where the program lies.
#include "app/shipped_clusters.h"

#include <algorithm>
#include <system_error>

namespace millrace::app {
namespace {

namespace fs = std::filesystem;

std::optional<fs::path> folder() {
  const fs::path sources = "experiments/clusters";
  std::error_code failure;
  if (fs::is_directory(sources, failure)) return fs::absolute(sources);
  const fs::path program = fs::read_symlink("/proc/self/exe", failure);
  if (failure) return std::nullopt;
  for (fs::path above = program.parent_path(); above.has_relative_path(); above = above.parent_path()) {
    for (const fs::path& place : {above / sources, above / "share/millrace" / sources}) {
      if (fs::is_directory(place, failure)) return place;
    }
  }
  // A build outside of the source tree.
  if (fs::is_directory(MILLRACE_CLUSTERS, failure)) return fs::path(MILLRACE_CLUSTERS);
  return std::nullopt;
}

}  // namespace

std::vector<fs::path> shipped_clusters() {
  std::vector<fs::path> files;
  if (const auto place = folder()) {
    for (const auto& entry : fs::directory_iterator(*place)) {
      if (entry.path().extension() == ".yaml") files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::optional<fs::path> shipped_cluster(const std::string& name) {
  for (const fs::path& file : shipped_clusters()) {
    if (file.filename() == name || file.stem() == name) return file;
  }
  return std::nullopt;
}

}  // namespace millrace::app
