// Holds includes and links against the table of rooms; each violation is one line with file, line and rule.
#include "tests/house/layers.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "tests/house/rooms.h"

namespace millrace::house {
namespace {

const Room* find_room(const std::string& name) {
  const auto row = std::find_if(rooms().begin(), rooms().end(), [&](const Room& room) { return room.name == name; });
  return row == rooms().end() ? nullptr : &*row;
}

std::string list(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string stem(const std::string& path) {
  const std::string name = file_name(path);
  return name.substr(0, name.rfind('.'));
}

// "" if `file`, which lies in a plug-in room, may include `path` of the same room; else the rule.
std::string plugin_rule(const SourceFile& file, const std::string& path) {
  const std::string inside = path.substr(path.find('/') + 1);
  if (inside.starts_with("common/") || plugin_interfaces().contains(inside)) return "";
  if (stem(file.path) == "registry" || stem(file.path) == stem(path)) return "";
  return "a plug-in includes no other one; what several need lies in common/";
}

// "" if the room of `file` may include the header `path` of a library; else the rule.
std::string library_rule(const std::string& room, const std::string& path) {
  for (const Wrapped& library : wrapped_libraries()) {
    if (!path.starts_with(library.prefix) || room == "app" || library.rooms.contains(room)) continue;
    return "only these rooms include " + library.prefix + "*: " + list(library.rooms) +
           (library.rooms.empty() ? "app" : ", app");
  }
  return "";
}

std::string room_rule(const SourceFile& file, const std::string& room, const std::string& path) {
  const std::string other = room_of(path);
  if (find_room(other) == nullptr) return "an include in quotes starts with the name of a room";
  if (!reach(room).contains(other)) return room + " may include only " + list(reach(room));
  if (other == room && plugin_rooms().contains(room)) return plugin_rule(file, path);
  return "";
}

// The list file without its comments, as words; "(" and ")" are words of their own.
std::vector<std::string> words(const SourceFile& file) {
  std::string text;
  for (const std::string& line : file.lines) {
    for (const char c : line.substr(0, line.find('#'))) {
      if (c == '(' || c == ')') text += {' ', c, ' '};
      else text += c;
    }
    text += ' ';
  }
  std::istringstream stream(text);
  std::vector<std::string> result;
  for (std::string word; stream >> word;) result.push_back(word);
  return result;
}

bool is_keyword(const std::string& word) {
  static const std::set<std::string> keywords{"SOURCES", "HEADERS", "ROOMS", "LIBRARIES", "PRIVATE_LIBRARIES", ")"};
  return keywords.contains(word);
}

}  // namespace

std::set<std::string> reach(const std::string& room) {
  const Room* row = find_room(room);
  if (row == nullptr) throw std::out_of_range("tests/house/rooms.h has no room '" + room + "'");
  std::set<std::string> names{room};
  for (const std::string& other : row->may_include) names.merge(reach(other));
  return names;
}

Violations include_violations(const SourceFile& file) {
  const std::string room = room_of(file.path);
  if (find_room(room) == nullptr) return {at(file, 1) + "lies in no room of tests/house/rooms.h"};
  Violations found;
  for (const Include& include : includes(file)) {
    const std::string rule = include.quoted ? room_rule(file, room, include.path) : library_rule(room, include.path);
    if (!rule.empty()) found.push_back(at(file, include.line) + "includes " + include.path + ": " + rule);
  }
  return found;
}

std::vector<RoomTarget> room_targets(const std::vector<SourceFile>& list_files) {
  std::vector<RoomTarget> targets;
  for (const SourceFile& file : list_files) {
    const std::vector<std::string> all = words(file);
    for (std::size_t i = 0; i + 2 < all.size(); ++i) {
      if (all[i] != "millrace_room" || all[i + 1] != "(") continue;
      RoomTarget target{all[i + 2], room_of(file.path), {}, file.path};
      bool in_rooms = false;
      for (std::size_t k = i + 3; k < all.size() && all[k] != ")"; ++k) {
        if (is_keyword(all[k])) in_rooms = all[k] == "ROOMS";
        else if (in_rooms) target.links.push_back(all[k]);
      }
      targets.push_back(target);
    }
  }
  return targets;
}

Violations link_violations(const std::vector<RoomTarget>& targets, const std::vector<SourceFile>& sources) {
  Violations found;
  std::map<std::string, std::string> room_of_target;
  for (const RoomTarget& target : targets) room_of_target[target.name] = target.room;

  std::map<std::string, std::set<std::string>> links;  // room → rooms that its targets link
  for (const RoomTarget& target : targets) {
    links[target.room].insert(target.room);
    for (const std::string& link : target.links) {
      const auto other = room_of_target.find(link);
      if (other == room_of_target.end()) {
        found.push_back(target.where + ": " + target.name + " links " + link + ", which no room declares");
      } else if (!reach(target.room).contains(other->second)) {
        found.push_back(target.where + ": " + target.name + " links " + link + ": " + target.room +
                        " may include only " + list(reach(target.room)));
      } else {
        links[target.room].insert(other->second);
      }
    }
  }
  for (std::size_t round = 0; round < rooms().size(); ++round) {  // a link of a link is a link
    for (auto& entry : links) {
      const std::set<std::string> direct = entry.second;
      for (const std::string& link : direct) entry.second.insert(links[link].begin(), links[link].end());
    }
  }
  for (const SourceFile& file : sources) {
    const std::string room = room_of(file.path);
    if (!links.contains(room)) continue;  // app is a program, not a room's library
    for (const Include& include : includes(file)) {
      const std::string other = room_of(include.path);
      if (!include.quoted || find_room(other) == nullptr || links.at(room).contains(other)) continue;
      found.push_back(at(file, include.line) + "includes " + include.path + ", but " + room +
                      "'s CMakeLists.txt does not link " + other);
    }
  }
  return found;
}

}  // namespace millrace::house
