// Stashes are few: as many as micro-batches in flight.
#include "program/kept_versions.h"

#include <algorithm>

namespace millrace {

bool KeptVersions::update(std::int32_t bucket) {
  if (updated_.empty() || updated_.contains(bucket)) {
    ++newest_;
    updated_.clear();
  }
  updated_.insert(bucket);
  return std::any_of(stashes_.begin(), stashes_.end(), [&](const auto& stash) { return stash.second == newest_ - 1; });
}

int KeptVersions::copies() const {
  std::set<std::int64_t> versions;
  for (const auto& [key, version] : stashes_) {
    if (version != newest_) versions.insert(version);
  }
  return static_cast<int>(versions.size());
}

}  // namespace millrace
