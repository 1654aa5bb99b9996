// A full disk is an error at once and costs nothing of what was written before (REPORTS L04).
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/mount.h>

#include "base/errors.h"
#include "storage/published_file.h"
#include "tests/storage/expect_error.h"
#include "tests/storage/temporary_folder.h"

namespace millrace::storage {
namespace {

const std::vector<Column> kColumns{{"iteration", ColumnType::int64, "1", "counts"}};

/// A file system of 256 KiB; skipped where the test may not mount one.
class DiskFull : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, "size=256k") != 0) {
      GTEST_SKIP() << "a small tmpfs cannot be mounted: " << std::strerror(errno);
    }
    mounted_ = true;
  }
  void TearDown() override {
    if (mounted_) ::umount2(folder_.path().c_str(), MNT_DETACH);
  }
  void fill() const {
    std::ofstream out(folder_ / "filler", std::ios::binary);
    const std::vector<char> page(4096, 'x');
    while (out.write(page.data(), 4096) && out.flush()) {}
  }

  TemporaryFolder folder_;
  bool mounted_ = false;
};

TEST_F(DiskFull, ATableThatDoesNotFitIsRefusedWhenMade) {
  const FileLock lock(folder_ / "a.h5");
  expect_error<SystemError>(
      [&] {
        make_published(lock, Existing::refuse, [](File& file) { file.make_table("t", kColumns, 100000, "too big"); });
      },
      {"/t: H5Dcreate2 failed", "No space left on device"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a.h5"));
}

TEST_F(DiskFull, RowsOfAMadeTableStillFitWhenOthersFillTheDisk) {
  const FileLock lock(folder_ / "a.h5");
  File file =
      make_published(lock, Existing::refuse, [](File& made) { made.make_table("t", kColumns, 10000, "fits"); });
  fill();
  Table table = file.table("t");
  for (std::int64_t i = 0; i < 10000; ++i) table.append({i});
  table.flush();
  EXPECT_EQ(File::open(folder_ / "a.h5").table("t").rows(), 10000U);
}

TEST_F(DiskFull, AFailedWriteLeavesTheFileIntact) {
  // In a process of its own, as a run that ends so: what the library cannot write out it never frees.
  const auto write_too_much = [this] {
    const FileLock lock(folder_ / "a.h5");
    File file =
        make_published(lock, Existing::refuse, [](File& made) { made.make_table("t", kColumns, 100, "small"); });
    Table table = file.table("t");
    for (std::int64_t i = 0; i < 50; ++i) table.append({i});
    table.flush();
    fill();
    file.make_dataset("big", NumberType::float64, std::vector<std::int64_t>{100000}, {"1", "too big"})
        .write<double>(std::vector<double>(100000));
    file.close();
  };
  const auto end_with_its_message = [&] {
    try {
      write_too_much();
      std::_Exit(0);
    } catch (const SystemError& error) {
      std::fputs(error.what(), stderr);
      std::_Exit(4);
    }
  };
  EXPECT_EXIT(end_with_its_message(), ::testing::ExitedWithCode(4), "a.h5.*No space left on device");
  EXPECT_EQ(File::open(folder_ / "a.h5").table("t").column_integers("iteration").size(), 50U);
}

TEST_F(DiskFull, AFailedReplacementLeavesTheFormerFile) {
  write_text_aside(folder_ / "a.txt", Existing::refuse, "former");
  fill();
  expect_error<SystemError>([&] { write_text_aside(folder_ / "a.txt", Existing::replace, std::string(300000, 'x')); },
                            {"write failed", "No space left on device"});
  std::ifstream in(folder_ / "a.txt");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "former");
}

}  // namespace
}  // namespace millrace::storage
