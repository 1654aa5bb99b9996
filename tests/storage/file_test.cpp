// What is written comes back: attributes, numbers, texts; and files that are not what they should be are refused.
#include "storage/file.h"

#include <cstdlib>
#include <fstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/errors.h"
#include "tests/storage/expect_error.h"
#include "tests/storage/temporary_folder.h"

namespace millrace::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(File, AttributesComeBack) {
  const TemporaryFolder folder;
  {
    File file = File::make(folder / "a.h5");
    file.set("seed", std::uint64_t{1} << 63);
    file.set("ranks", 4);
    file.set("lr", 0.1);
    file.set("name", "Zürich");
    file.set("classes", std::vector<std::string>{"Ankle boot", "", "Ünter"});
    file.set("mean", std::vector<double>{0.25, 0.5});
    file.set("none", std::vector<double>{});
    file.set("nobody", std::vector<std::string>{});
    file.set("name", "Genève");  // replaces
    file.close();
  }
  const File file = File::open(folder / "a.h5");
  EXPECT_EQ(file.integer("ranks"), 4);
  EXPECT_EQ(file.real("lr"), 0.1);
  EXPECT_EQ(file.text("name"), "Genève");
  EXPECT_THAT(file.texts("classes"), ElementsAre("Ankle boot", "", "Ünter"));
  EXPECT_THAT(file.reals("mean"), ElementsAre(0.25, 0.5));
  EXPECT_THAT(file.reals("none"), IsEmpty());
  EXPECT_THAT(file.texts("nobody"), IsEmpty());
  EXPECT_FALSE(file.has("missing"));
  expect_error<InvalidInput>([&] { file.text("missing"); }, {"a.h5", "attribute 'missing' is missing"});
  expect_error<InvalidInput>([&] { file.text("ranks"); }, {"attribute 'ranks' must be text"});
  expect_error<InvalidInput>([&] { file.real("mean"); }, {"attribute 'mean' must be one value"});
  expect_error<InvalidInput>([&] { file.integer("name"); }, {"attribute 'name' must be an integer"});
}

TEST(File, NumbersComeBackByRowsListsAndBlocks) {
  const TemporaryFolder folder;
  std::vector<float> values(5 * 2 * 3);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  {
    File file = File::make(folder / "a.h5");
    Dataset made = file.make_group("train").make_dataset("inputs", NumberType::float32,
                                                         std::vector<std::int64_t>{5, 2, 3}, {"1", "test values"});
    made.write_rows<float>(0, 2, std::span(values).first(12));
    made.write_block<float>(std::vector<std::int64_t>{2, 0, 0}, std::vector<std::int64_t>{3, 2, 3},
                            std::span(values).subspan(12));
  }
  const File file = File::open(folder / "a.h5");
  EXPECT_THAT(file.names(), ElementsAre("train"));
  EXPECT_TRUE(file.contains("train/inputs"));
  EXPECT_FALSE(file.contains("test/inputs"));
  const Dataset inputs = file.group("train").dataset("inputs");
  EXPECT_THAT(inputs.shape(), ElementsAre(5, 2, 3));
  EXPECT_EQ(inputs.type(), NumberType::float32);
  EXPECT_EQ(inputs.text("unit"), "1");
  EXPECT_EQ(inputs.text("description"), "test values");

  std::vector<double> all(30);
  inputs.read(std::span(all));
  EXPECT_EQ(all, std::vector<double>(values.begin(), values.end()));
  std::vector<float> rows(4 * 6);
  inputs.read_row_list(std::vector<std::int64_t>{4, 0, 1, 4}, std::span(rows));
  EXPECT_EQ(std::vector<float>(rows.begin(), rows.begin() + 6), (std::vector<float>{24, 25, 26, 27, 28, 29}));
  EXPECT_EQ(std::vector<float>(rows.begin() + 6, rows.begin() + 18),
            (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(std::vector<float>(rows.begin() + 18, rows.end()), (std::vector<float>{24, 25, 26, 27, 28, 29}));
  std::vector<std::int32_t> block(2);
  inputs.read_block(std::vector<std::int64_t>{1, 1, 2}, std::vector<std::int64_t>{2, 1, 1}, std::span(block));
  EXPECT_THAT(block, ElementsAre(11, 17));

  std::vector<float> room(12);
  expect_error<InvalidInput>([&] { inputs.read_rows(4, 2, std::span(room)); }, {"/train/inputs", "outside the shape"});
  expect_error<InvalidInput>([&] { inputs.read_row_list(std::vector<std::int64_t>{5, -1}, std::span(room)); },
                             {"outside the shape"});
  EXPECT_THROW(inputs.read_rows(0, 1, std::span(room)), std::logic_error);
}

TEST(File, TextDatasetsComeBack) {
  const TemporaryFolder folder;
  {
    File file = File::make(folder / "a.h5");
    file.make_text("config", "name: α\n", {"1", "the experiment"});
  }
  const File file = File::open(folder / "a.h5");
  EXPECT_EQ(file.text_dataset("config"), "name: α\n");
  expect_error<InvalidInput>([&] { file.dataset("config"); }, {"/config", "must hold numbers"});
  expect_error<InvalidInput>([&] { file.dataset("plan"); }, {"/plan is missing"});
  expect_error<InvalidInput>([&] { file.group("config"); }, {"/config is not a group"});
  expect_error<InvalidInput>([&] { file.table("config"); }, {"/config is not a table"});
}

TEST(File, AnExistingFileIsNeverTruncated) {
  const TemporaryFolder folder;
  { File::make(folder / "a.h5").set("name", "first"); }
  expect_error<InvalidInput>([&] { File::make(folder / "a.h5"); }, {"a.h5: exists already"});
  EXPECT_EQ(File::open(folder / "a.h5").text("name"), "first");
}

TEST(File, WhatIsNoHdf5FileIsRefusedByName) {
  const TemporaryFolder folder;
  expect_error<InvalidInput>([&] { File::open(folder / "none.h5"); }, {"none.h5: no such file"});
  expect_error<InvalidInput>([&] { File::open(folder.path()); }, {"is a folder"});
  std::ofstream(folder / "text.h5") << "not binary at all";
  expect_error<InvalidInput>([&] { File::open(folder / "text.h5"); }, {"text.h5: not an HDF5 file"});
  {
    File file = File::make(folder / "short.h5");
    file.make_dataset("a", NumberType::float64, std::vector<std::int64_t>{10000}, {"1", "zeros"})
        .write<double>(std::vector<double>(10000));
    file.close();
  }
  std::filesystem::resize_file(folder / "short.h5", 5000);
  expect_error<InvalidInput>([&] { File::open(folder / "short.h5"); }, {"short.h5: truncated: 5000 bytes found"});
}

TEST(File, LibraryFailuresSayWhatTheLibrarySaid) {
  const TemporaryFolder folder;
  File file = File::make(folder / "a.h5");
  file.make_group("g");
  ::testing::internal::CaptureStderr();
  expect_error<SystemError>([&] { file.make_group("g"); }, {"a.h5: /g: H5Gcreate2 failed", "exists"});
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");  // HDF5 itself prints nothing
}

TEST(FileLocking, DISABLED_OpensWhatItsParentHasLocked) { File::open(std::getenv("MILLRACE_TEST_FILE")); }

// REPORTS L03: HDF5's own locks are off, and where the user forces them on a refusal says how to turn them off.
TEST(FileLocking, ALockRefusedByTheSystemGetsAHint) {
  const TemporaryFolder folder;
  File::make(folder / "a.h5").close();
  const int held = ::open((folder / "a.h5").c_str(), O_RDWR);
  ASSERT_EQ(::flock(held, LOCK_EX), 0);
  EXPECT_NO_THROW(File::open(folder / "a.h5"));
  const auto output = folder / "output.txt";
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  // A process of its own: the library looks at the variable once.
  const int status = std::system(fmt::format("HDF5_USE_FILE_LOCKING=TRUE MILLRACE_TEST_FILE={} {} "
                                             "--gtest_also_run_disabled_tests --gtest_filter=*ItsParentHasLocked > {}",
                                             (folder / "a.h5").string(), self, output.string()).c_str());
  ::close(held);
  EXPECT_NE(status, 0);
  std::ifstream in(output);
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(in), {}),
              ::testing::HasSubstr("set HDF5_USE_FILE_LOCKING=FALSE"));
}

}  // namespace
}  // namespace millrace::storage
