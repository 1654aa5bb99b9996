// The log of a sweep: one whole line a cell, whatever was there before.
#include "record/cell_log.h"

#include <fstream>
#include <iterator>

#include <gmock/gmock.h>

#include "base/errors.h"
#include "tests/storage/temporary_folder.h"

namespace millrace::record {
namespace {

std::string content(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(CellLog, AppendsAndReplaces) {
  const storage::TemporaryFolder folder;
  const auto file = folder / "s.jsonl";
  CellLog log(file);
  log.add({"a", R"({"cell":"a","try":1})"});
  log.add({"b", R"({"cell":"b"})"});
  log.add({"a", R"({"cell":"a","try":2})"});
  EXPECT_EQ(content(file), "{\"cell\":\"a\",\"try\":2}\n{\"cell\":\"b\"}\n");
}

TEST(CellLog, CutsOffHalfALine) {
  const storage::TemporaryFolder folder;
  const auto file = folder / "s.jsonl";
  std::ofstream(file) << "{\"cell\":\"a\"}\n{\"cell\":\"b";
  EXPECT_EQ(read_cell_log(file).size(), 1U);
  CellLog log(file);
  log.add({"c", R"({"cell":"c"})"});
  EXPECT_EQ(content(file), "{\"cell\":\"a\"}\n{\"cell\":\"c\"}\n");
}

TEST(CellLog, RefusesOtherFiles) {
  const storage::TemporaryFolder folder;
  std::ofstream(folder / "x") << "{\"cell\":\"a\"}\nhello\n";
  try {
    read_cell_log(folder / "x");
    FAIL();
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("x:2: this is no line of a sweep"));
  }
}

}  // namespace
}  // namespace millrace::record
