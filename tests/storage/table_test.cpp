// Tables keep their rows: round trip, count raised by a flush only, growth, resume, and a writer killed at any moment.
#include "storage/table.h"

#include <csignal>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/errors.h"
#include "base/random.h"
#include "storage/published_file.h"
#include "tests/storage/expect_error.h"
#include "tests/storage/temporary_folder.h"

namespace millrace::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

const std::vector<Column> kTableColumns{{"iteration", ColumnType::int64, "1", "counts from 1"},
                                        {"loss", ColumnType::float64, "1", "mean loss"},
                                        {"bytes", ColumnType::uint64, "bytes", "sent"},
                                        {"skipped", ColumnType::uint8, "1", "update left out"},
                                        {"host", ColumnType::text, "1", "where", 4}};

File make_file(const FileLock& lock, std::uint64_t capacity) {
  return make_published(lock, Existing::refuse,
                        [&](File& file) { file.make_table("iterations", kTableColumns, capacity, "one row a step"); });
}

TEST(Table, RowsComeBackByColumn) {
  const TemporaryFolder folder;
  const FileLock lock(folder / "a.h5");
  File file = make_file(lock, 10);
  Table table = file.table("iterations");
  table.append({1, 0.5, std::uint64_t{1} << 63, 0, "ab"});
  table.append({2, 3, 7, 255, "éééé"});  // 8 bytes: cut to the 2 characters that fit in 4
  EXPECT_EQ(table.rows(), 2U);
  EXPECT_EQ(File::open(folder / "a.h5").table("iterations").rows(), 0U);  // not flushed yet
  table.flush();

  const File again = File::open(folder / "a.h5");
  const Table read = again.table("iterations");
  EXPECT_EQ(read.rows(), 2U);
  EXPECT_EQ(read.capacity(), 10U);
  EXPECT_THAT(read.column_integers("iteration"), ElementsAre(1, 2));
  EXPECT_THAT(read.column_reals("loss"), ElementsAre(0.5, 3.0));
  EXPECT_THAT(read.column_reals("bytes"), ElementsAre(0x1p63, 7.0));
  EXPECT_THAT(read.column_integers("skipped"), ElementsAre(0, 255));
  EXPECT_THAT(read.column_texts("host"), ElementsAre("ab", "éé"));
  EXPECT_THAT(read.texts("unit"), ElementsAre("1", "1", "bytes", "1", "1"));
  EXPECT_EQ(read.text("description"), "one row a step");
  expect_error<InvalidInput>([&] { read.column_reals("los"); },
                             {"/iterations", "unknown column 'los'", "did you mean 'loss'"});
  expect_error<InvalidInput>([&] { read.column_integers("loss"); }, {"column 'loss' does not hold integers"});
  expect_error<InvalidInput>([&] { read.column_texts("loss"); }, {"column 'loss' does not hold text"});
}

TEST(Table, CellsMustFitTheirColumns) {
  const TemporaryFolder folder;
  const FileLock lock(folder / "a.h5");
  File file = make_file(lock, 1);
  Table table = file.table("iterations");
  EXPECT_THROW(table.append({1, 0.5}), std::logic_error);
  EXPECT_THROW(table.append({0.5, 0.5, 1, 0, "a"}), std::logic_error);
  EXPECT_THROW(table.append({1, 0.5, -1, 0, "a"}), std::logic_error);
  EXPECT_THROW(table.append({1, 0.5, 1, 256, "a"}), std::logic_error);
  EXPECT_THROW(table.append({1, 0.5, 1, 0, 7}), std::logic_error);
  EXPECT_EQ(table.rows(), 0U);
  table.append({1, 0.5, 1, 0, "a"});
  EXPECT_THROW(table.append({2, 0.5, 1, 0, "a"}), std::length_error);
}

TEST(Table, IsResizedByACopyAndGoesOn) {
  const TemporaryFolder folder;
  const FileLock lock(folder / "a.h5");
  File file = make_file(lock, 2);
  file.make_text("config", "name: x", {"1", "kept"});
  {
    Table table = file.table("iterations");
    table.append({1, 0.5, 1, 0, "a"});
    table.append({2, 0.25, 2, 1, "b"});
    table.flush();
  }
  file.close();
  edit_published(lock, [](File& copy) { resize_table(copy, "iterations", 1000); });
  file = File::modify(lock);
  Table table = file.table("iterations");
  EXPECT_EQ(table.capacity(), 1000U);
  table.append({3, 0.125, 3, 0, "c"});
  table.flush();
  EXPECT_THAT(table.column_integers("iteration"), ElementsAre(1, 2, 3));
  EXPECT_THAT(table.column_texts("host"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(table.texts("unit"), ElementsAre("1", "1", "bytes", "1", "1"));
  EXPECT_EQ(file.text_dataset("config"), "name: x");
  EXPECT_THAT(file.names(), ElementsAre("config", "iterations"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 2);  // a.h5 and its lock
}

TEST(Table, AResumedRunDropsLaterRows) {
  const TemporaryFolder folder;
  const FileLock lock(folder / "a.h5");
  File file = make_file(lock, 5);
  Table table = file.table("iterations");
  for (int i = 1; i <= 4; ++i) table.append({i, 0.5, 0, 0, "a"});
  table.flush();
  table.keep_rows(2);
  table.append({33, 0.5, 0, 0, "a"});
  table.flush();
  EXPECT_THAT(table.column_integers("iteration"), ElementsAre(1, 2, 33));
  expect_error<InvalidInput>([&] { table.keep_rows(4); }, {"cannot keep 4 rows, the table has 3"});
}

/// A child that flushes every row and says so in a pipe, until it is killed.
[[noreturn]] void write_until_killed(const std::filesystem::path& path, int pipe) {
  const FileLock lock(path);
  File file = make_file(lock, 100000);
  Table table = file.table("iterations");
  for (std::int64_t i = 1;; ++i) {
    table.append({i, 1.0 / static_cast<double>(i), 0, 0, "kill"});
    table.flush();
    if (::write(pipe, &i, sizeof i) != sizeof i) ::_exit(1);
  }
}

TEST(Table, AKilledWriterLeavesEveryFlushedRow) {
  const Random delays(7, "kill");
  for (std::uint64_t round = 0; round < 30; ++round) {
    const TemporaryFolder folder;
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) write_until_killed(folder / "a.h5", ends[1]);
    ::close(ends[1]);
    std::int64_t told = 0;
    ASSERT_EQ(::read(ends[0], &told, sizeof told), static_cast<ssize_t>(sizeof told));  // it has begun
    std::this_thread::sleep_for(std::chrono::microseconds(delays.below(20000, round)));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    for (std::int64_t next = 0; ::read(ends[0], &next, sizeof next) == static_cast<ssize_t>(sizeof next);) told = next;
    ::close(ends[0]);

    const File file = File::open(folder / "a.h5");
    const std::vector<std::int64_t> rows = file.table("iterations").column_integers("iteration");
    std::vector<std::int64_t> counted(rows.size());
    for (std::size_t i = 0; i < counted.size(); ++i) counted[i] = static_cast<std::int64_t>(i) + 1;
    EXPECT_GE(rows.size(), static_cast<std::size_t>(told));
    EXPECT_THAT(rows, ElementsAreArray(counted));
    EXPECT_NO_THROW(FileLock(folder / "a.h5"));  // its lock is stale and does not stand in the way
  }
}

}  // namespace
}  // namespace millrace::storage
