// Positions by name against a map.
#include "graph/name_index.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

namespace millrace {
namespace {

TEST(NameIndex, FindsWhatWasInsertedAndNothingElse) {
  std::vector<std::string> names;
  const auto name_of = [&](std::int32_t i) -> std::string_view { return names[static_cast<std::size_t>(i)]; };
  NameIndex index;
  EXPECT_EQ(index.find("op0", name_of), -1);
  std::map<std::string, std::int32_t> twin;
  for (int i = 0; i < 20'000; ++i) {
    const std::string name = "op" + std::to_string(i * 7 % 15'000);  // a quarter comes twice
    const auto position = static_cast<std::int32_t>(names.size());
    const bool fresh = twin.emplace(name, position).second;
    EXPECT_EQ(index.insert(name, position, name_of), fresh) << name;
    if (fresh) names.push_back(name);
  }
  EXPECT_EQ(names.size(), 15'000U);
  for (const auto& [name, position] : twin) EXPECT_EQ(index.find(name, name_of), position) << name;
  EXPECT_EQ(index.find("op15000", name_of), -1);
  EXPECT_EQ(index.find("", name_of), -1);
}

// Among so many names some share the part of the hash that a slot keeps.
TEST(NameIndex, TellsNamesOfEqualHashesApart) {
  constexpr std::int32_t kNames = 150'000;
  std::vector<std::string> names;
  const auto name_of = [&](std::int32_t i) -> std::string_view { return names[static_cast<std::size_t>(i)]; };
  NameIndex index;
  std::set<std::uint32_t> tags;
  for (std::int32_t i = 0; i < kNames; ++i) {
    const std::string name = "op" + std::to_string(i);
    ASSERT_TRUE(index.insert(name, i, name_of)) << name;
    names.push_back(name);
    tags.insert(static_cast<std::uint32_t>(hash64(name)));
  }
  EXPECT_LT(tags.size(), names.size());
  for (std::int32_t i = 0; i < kNames; ++i) ASSERT_EQ(index.find(name_of(i), name_of), i);
}

}  // namespace
}  // namespace millrace
