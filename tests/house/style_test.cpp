// The house's style where a machine can see it: short files that open with a sentence and leave nothing undone.
#include <algorithm>
#include <cctype>
#include <string>

#include <gmock/gmock.h>

#include "tests/house/source_tree.h"

namespace millrace::house {
namespace {

constexpr std::size_t kMostLines = 600;  // a longer file hides two concepts
constexpr std::size_t kMostLinesMedian = 120;
constexpr std::size_t kMostLines95 = 400;

std::vector<SourceFile> all_sources() {
  std::vector<SourceFile> files = product_sources();
  for (SourceFile& file : read_tree({"tests"}, {".h", ".cpp", ".cu"})) files.push_back(std::move(file));
  return files;
}

// The line count at `fraction` of the sorted files.
std::size_t quantile(const std::vector<SourceFile>& files, double fraction) {
  std::vector<std::size_t> counts;
  for (const SourceFile& file : files) counts.push_back(file.lines.size());
  std::sort(counts.begin(), counts.end());
  return counts.at(static_cast<std::size_t>(fraction * static_cast<double>(counts.size() - 1)));
}

// Where `word` stands in `line` with no letter, digit or underscore before it.
bool has_word(const std::string& line, const std::string& word) {
  const auto part_of_a_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (std::size_t i = line.find(word); i != std::string::npos; i = line.find(word, i + 1)) {
    if (i == 0 || !part_of_a_name(line[i - 1])) return true;
  }
  return false;
}

TEST(Style, FilesAreShort) {
  for (const SourceFile& file : all_sources()) {
    EXPECT_LE(file.lines.size(), kMostLines)
        << file.path << ": longer than " << kMostLines << " lines hides two concepts";
  }
  EXPECT_LE(quantile(product_sources(), 0.5), kMostLinesMedian) << "median over src, partitioners, schedules";
  EXPECT_LE(quantile(product_sources(), 0.95), kMostLines95) << "95th percentile over src, partitioners, schedules";
}

TEST(Style, FilesOpenWithASentence) {
  std::string without;
  for (const SourceFile& file : all_sources()) {
    if (file.lines.empty() || !file.lines[0].starts_with("// ")) without += "\n" + file.path + ":1";
  }
  EXPECT_TRUE(without.empty()) << "a file opens with one sentence on what it is for:" << without;
}

TEST(Style, HeadersAreReadOnce) {
  for (const SourceFile& file : all_sources()) {
    if (!file.path.ends_with(".h")) continue;
    EXPECT_NE(std::find(file.lines.begin(), file.lines.end(), "#pragma once"), file.lines.end())
        << file.path << ": a header says #pragma once";
  }
}

TEST(Style, NothingIsLeftForLater) {
  const std::string words[] = {std::string("TO") + "DO", std::string("FIX") + "ME"};
  for (const SourceFile& file : all_sources()) {
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      for (const std::string& word : words) {
        EXPECT_FALSE(has_word(file.lines[i], word)) << at(file, i + 1) << word << ": do it, or open an issue";
      }
    }
  }
}

TEST(Style, OnlyAppEndsTheProcess) {
  for (const SourceFile& file : product_sources()) {
    if (room_of(file.path) == "app") continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      EXPECT_FALSE(has_word(file.lines[i], "exit(")) << at(file, i + 1) << "only src/app calls exit(); throw instead";
    }
  }
}

TEST(Style, WordsAreFoundWhole) {
  EXPECT_TRUE(has_word("std::exit(1);", "exit("));
  EXPECT_FALSE(has_word("on_exit(1);", "exit("));
}

}  // namespace
}  // namespace millrace::house
