// The log of a sweep (INTERFACES 9): one line for each finished cell, on the disk before the next one counts.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "storage/write_aside.h"

namespace millrace::record {

/// One cell's line: a JSON object that says its identity as `cell`.
struct LoggedCell {
  std::string id;
  std::string line;
};

/// What a log holds, in its order. A last line that a kill cut off is left out: its cell counts as missing.
/// \throws InvalidInput  a line that is no such object, cited as FILE:LINE.
std::vector<LoggedCell> read_cell_log(const std::filesystem::path& file);

/// The writer; whoever makes it holds the sweep's lock. A kill at any moment leaves one line for each finished cell.
class CellLog {
 public:
  /// Opens or makes the file, which then ends in a whole line.
  explicit CellLog(std::filesystem::path file);

  /// Puts the line of a cell on the disk. A cell that has one (it failed before) gets the new one in its place.
  void add(const LoggedCell& cell);

 private:
  void rewrite() const;

  std::filesystem::path file_;
  std::vector<LoggedCell> cells_;
  std::map<std::string, std::size_t> places_;  // in `cells_`, by identity
};

}  // namespace millrace::record
