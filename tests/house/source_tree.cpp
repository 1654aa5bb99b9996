// Reads the source tree as the house's tests see it: files as lines, include directives, rooms.
#include "tests/house/source_tree.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace millrace::house {
namespace {

namespace fs = std::filesystem;

bool ends_in_one_of(const std::string& name, const std::vector<std::string>& suffixes) {
  return std::any_of(suffixes.begin(), suffixes.end(),
                     [&](const std::string& suffix) { return name.ends_with(suffix); });
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  return first == std::string_view::npos ? std::string_view{} : text.substr(first);
}

}  // namespace

SourceFile source_file(std::string path, std::string_view text) {
  SourceFile file{std::move(path), {}};
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) file.lines.push_back(line);
  return file;
}

std::vector<SourceFile> read_tree(const std::vector<std::string>& folders, const std::vector<std::string>& suffixes) {
  const fs::path root = MILLRACE_SOURCE_DIR;
  std::vector<SourceFile> files;
  for (const std::string& folder : folders) {
    if (!fs::exists(root / folder)) continue;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder)) {
      if (!entry.is_regular_file() || !ends_in_one_of(entry.path().filename().string(), suffixes)) continue;
      std::ifstream stream(entry.path(), std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(stream), {}};
      files.push_back(source_file(fs::relative(entry.path(), root).generic_string(), text));
    }
  }
  std::sort(files.begin(), files.end(), [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

std::vector<SourceFile> product_sources() {
  return read_tree({"src", "partitioners", "schedules"}, {".h", ".cpp", ".cu", ".cuh"});
}

std::vector<Include> includes(const SourceFile& file) {
  std::vector<Include> found;
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    std::string_view rest = trimmed(file.lines[i]);
    if (!rest.starts_with('#')) continue;
    rest = trimmed(rest.substr(1));
    if (!rest.starts_with("include")) continue;
    rest = trimmed(rest.substr(7));
    if (!rest.starts_with('"') && !rest.starts_with('<')) continue;
    const bool quoted = rest.front() == '"';
    rest = rest.substr(1);
    found.push_back({i + 1, quoted, std::string(rest.substr(0, rest.find(quoted ? '"' : '>')))});
  }
  return found;
}

std::string room_of(std::string_view path) {
  if (path.starts_with("src/")) path.remove_prefix(4);
  const std::size_t slash = path.find('/');
  return slash == std::string_view::npos ? "" : std::string(path.substr(0, slash));
}

std::string at(const SourceFile& file, std::size_t line) { return file.path + ":" + std::to_string(line) + ": "; }

}  // namespace millrace::house
