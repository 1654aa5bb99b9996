// The versions of a stage's weights that stashes keep on a rank, counted while its list is stepped through (METHODS 2).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace millrace {

/// A stash costs nothing until an update changes the weights that it names: then one copy serves all stashes of them.
class KeptVersions {
 public:
  void stash(std::int32_t iteration, std::int32_t micro_batch) { stashes_[{iteration, micro_batch}] = newest_; }
  void drop(std::int32_t iteration, std::int32_t micro_batch) { stashes_.erase({iteration, micro_batch}); }
  /// One of the stage's buckets is updated; true where its weights are copied first. All buckets together make a
  /// version.
  bool update(std::int32_t bucket);
  /// Beside the newest weights.
  int copies() const;

 private:
  std::int64_t newest_ = 0;                                                // version
  std::set<std::int32_t> updated_;                                         // buckets that are of it
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> stashes_;  // version by iteration and micro-batch
};

}  // namespace millrace
