// Looks for files that ship, from the working directory and from where the program lies.
#include "app/shipped_files.h"

#include <algorithm>
#include <system_error>

namespace millrace::app {
namespace fs = std::filesystem;

std::optional<fs::path> shipped_file(const fs::path& path) {
  std::error_code failure;
  if (fs::exists(path, failure)) return fs::absolute(path);
  const fs::path program = fs::read_symlink("/proc/self/exe", failure);
  if (failure) return std::nullopt;
  for (fs::path above = program.parent_path(); above.has_relative_path(); above = above.parent_path()) {
    for (const fs::path& place : {above / path, above / "share/millrace" / path}) {
      if (fs::exists(place, failure)) return place;
    }
  }
  // A build outside of the source tree.
  const fs::path source = fs::path(MILLRACE_SOURCES) / path;
  if (fs::exists(source, failure)) return source;
  return std::nullopt;
}

std::vector<fs::path> shipped_clusters() {
  std::vector<fs::path> files;
  if (const auto place = shipped_file("experiments/clusters")) {
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
