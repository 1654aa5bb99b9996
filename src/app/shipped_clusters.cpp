// Lists the folder of cluster files.
#include "app/shipped_clusters.h"

#include <algorithm>

#include "app/shipped_folder.h"

namespace millrace::app {
namespace fs = std::filesystem;

std::vector<fs::path> shipped_clusters() {
  std::vector<fs::path> files;
  if (const auto place = find_shipped("experiments/clusters")) {
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
