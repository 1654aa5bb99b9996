// Reads the source tree as the house's tests see it: files as lines, include directives, rooms.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace millrace::house {

/// A text file; `path` is relative to the root of the repository ("src/graph/graph.h").
struct SourceFile {
  std::string path;
  std::vector<std::string> lines;
};

/// Splits `text` at line ends; for files that exist only in a test.
SourceFile source_file(std::string path, std::string_view text);

/// All files under the folders of the repository whose name ends in one of `suffixes`, sorted by path.
std::vector<SourceFile> read_tree(const std::vector<std::string>& folders, const std::vector<std::string>& suffixes);

/// The C++ and CUDA files of the product: src, partitioners, schedules.
std::vector<SourceFile> product_sources();

struct Include {
  std::size_t line;  ///< from 1
  bool quoted;       ///< "…" rather than <…>
  std::string path;
};

std::vector<Include> includes(const SourceFile& file);

/// "graph" for src/graph/ops/linear.cpp, "partitioners" for partitioners/dp.cpp, "" for files directly in src.
std::string room_of(std::string_view path);

/// "src/graph/graph.h:7: " in front of what is wrong there.
std::string at(const SourceFile& file, std::size_t line);

}  // namespace millrace::house
