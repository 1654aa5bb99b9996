// Other programs read what is written here: h5dump, and h5py where it is installed.
#include <array>
#include <cstdio>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/published_file.h"
#include "tests/storage/temporary_folder.h"

namespace millrace::storage {
namespace {

using ::testing::HasSubstr;

struct Ran {
  int status;
  std::string output;
};

Ran ran(const std::string& command) {
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {-1, ""};
  std::string output;
  std::array<char, 4096> buffer;
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) output.append(buffer.data(), got);
  return {::pclose(pipe), output};
}

class Tools : public ::testing::Test {
 protected:
  Tools() : lock_(folder_ / "a.h5"), file_(make_published(lock_, Existing::refuse, [](File& file) {
              file.set("name", "Zürich");
              file.make_text("config", "name: α", {"1", "experiment"});
              file.make_table("iterations",
                              {{"iteration", ColumnType::int64, "1", "counts"},
                               {"loss", ColumnType::float64, "1", "mean"},
                               {"host", ColumnType::text, "1", "where", 8}},
                              3, "steps");
            })) {
    Table table = file_.table("iterations");
    table.append({1, 0.5, "knot"});
    table.append({2, 0.25, "köln"});
    table.flush();
  }

  TemporaryFolder folder_;
  FileLock lock_;
  File file_;  // stays open: a running file can be looked at (REPORTS L07)
};

TEST_F(Tools, H5dumpReadsARunningFile) {
  const Ran dump = ran("h5dump " + (folder_ / "a.h5").string());
  ASSERT_EQ(dump.status, 0) << dump.output;
  for (const char* words : {"ATTRIBUTE \"rows\"", "H5T_STD_U64LE", "H5T_STD_I64LE \"iteration\"",
                            "H5T_IEEE_F64LE \"loss\"",
                            "CSET H5T_CSET_UTF8", "0.25", "\"knot\"", "(0): \"experiment\"", "ATTRIBUTE \"unit\""}) {
    EXPECT_THAT(dump.output, HasSubstr(words));
  }
  const Ran layout = ran("h5dump -H -p " + (folder_ / "a.h5").string());
  EXPECT_THAT(layout.output, HasSubstr("CONTIGUOUS"));
  EXPECT_THAT(layout.output, HasSubstr("H5D_ALLOC_TIME_EARLY"));
}

TEST_F(Tools, H5pyReadsARunningFile) {
  if (ran("/usr/bin/python3 -c 'import h5py'").status != 0) GTEST_SKIP() << "python3-h5py is not installed";
  std::ofstream(folder_ / "read.py") << R"(
import sys, h5py
file = h5py.File(sys.argv[1], "r")
table = file["iterations"]
rows = table[: table.attrs["rows"]]
assert file.attrs["name"] == "Zürich"
assert list(rows["iteration"]) == [1, 2] and list(rows["loss"]) == [0.5, 0.25]
assert [host.decode() for host in rows["host"]] == ["knot", "köln"]
assert list(table.attrs["unit"]) == ["1", "1", "1"] and table.attrs["description"] == "steps"
assert file["config"].asstr()[()] == "name: α"
)";
  const Ran read = ran("/usr/bin/python3 " + (folder_ / "read.py").string() + " " + (folder_ / "a.h5").string());
  EXPECT_EQ(read.status, 0) << read.output;
}

}  // namespace
}  // namespace millrace::storage
