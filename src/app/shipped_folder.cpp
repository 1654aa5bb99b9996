// Looks from the working directory, from where the program lies, and in the source tree.
#include "app/shipped_folder.h"

#include <algorithm>
#include <system_error>

namespace millrace::app {

namespace fs = std::filesystem;

std::vector<fs::path> shipped_places(const fs::path& part) {
  std::error_code failure;
  std::vector<fs::path> places{fs::absolute(part)};
  const fs::path program = fs::read_symlink("/proc/self/exe", failure);
  for (fs::path above = program.parent_path(); !failure && above.has_relative_path(); above = above.parent_path()) {
    places.push_back(above / part);
    places.push_back(above / "share/millrace" / part);
  }
  places.push_back(fs::path(MILLRACE_SOURCES) / part);  // a build outside of the source tree
  return places;
}

std::optional<fs::path> find_shipped(const fs::path& part) {
  std::error_code failure;
  for (const fs::path& place : shipped_places(part)) {
    if (fs::exists(place, failure)) return place;
  }
  return std::nullopt;
}

}  // namespace millrace::app
