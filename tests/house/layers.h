// Holds includes and links against the table of rooms; each violation is one line with file, line and rule.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/house/source_tree.h"

namespace millrace::house {

using Violations = std::vector<std::string>;

/// The rooms that `room` may include: itself, those that its row names, and what those may include.
/// \throws std::out_of_range  for a room that the table does not have.
std::set<std::string> reach(const std::string& room);

/// Includes of other rooms that the table does not allow, of libraries that another room wraps, and of one
/// partitioner or schedule by another.
Violations include_violations(const SourceFile& file);

/// The targets that a list file declares with millrace_room(), with the targets named after ROOMS.
struct RoomTarget {
  std::string name;
  std::string room;  ///< by the folder of the list file
  std::vector<std::string> links;
  std::string where;
};

std::vector<RoomTarget> room_targets(const std::vector<SourceFile>& list_files);

/// Links that the table does not allow, and rooms that a room's files include without linking them.
Violations link_violations(const std::vector<RoomTarget>& targets, const std::vector<SourceFile>& sources);

}  // namespace millrace::house
