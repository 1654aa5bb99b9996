// Files appear whole or not at all.
#include "storage/write_aside.h"

#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/errors.h"
#include "storage/published_file.h"
#include "tests/storage/expect_error.h"
#include "tests/storage/temporary_folder.h"

namespace millrace::storage {
namespace {

std::string content(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::ptrdiff_t files_in(const TemporaryFolder& folder) {
  return std::distance(std::filesystem::directory_iterator(folder.path()), {});
}

TEST(WriteAside, MakesFoldersAndReplacesOnlyWhenAsked) {
  const TemporaryFolder folder;
  write_text_aside(folder / "new/deep/a.txt", Existing::refuse, "one");
  EXPECT_EQ(content(folder / "new/deep/a.txt"), "one");
  expect_error<InvalidInput>([&] { write_text_aside(folder / "new/deep/a.txt", Existing::refuse, "two"); },
                             {"a.txt: exists already", "--overwrite"});
  EXPECT_EQ(content(folder / "new/deep/a.txt"), "one");
  write_text_aside(folder / "new/deep/a.txt", Existing::replace, "two");
  EXPECT_EQ(content(folder / "new/deep/a.txt"), "two");
  expect_error<InvalidInput>([&] { write_text_aside(folder / "new", Existing::replace, ""); }, {"is a folder"});
}

TEST(WriteAside, FollowsLinksAndLeavesDevicesAndPipes) {
  const TemporaryFolder folder;
  write_text_aside(folder / "a.txt", Existing::refuse, "one");
  std::filesystem::create_symlink("a.txt", folder / "link");
  expect_error<InvalidInput>([&] { write_text_aside(folder / "link", Existing::refuse, ""); }, {"link: exists"});
  write_text_aside(folder / "link", Existing::replace, "two");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(content(folder / "a.txt"), "two");
  std::filesystem::create_symlink(folder / "later.txt", folder / "dangling");
  write_text_aside(folder / "dangling", Existing::refuse, "three");
  EXPECT_EQ(content(folder / "later.txt"), "three");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/full", folder / "device");
  for (const char* name : {"pipe", "device"}) {
    for (const Existing existing : {Existing::refuse, Existing::replace}) {
      expect_error<InvalidInput>([&] { write_text_aside(folder / name, existing, ""); }, {"is not a regular file"});
    }
  }
  EXPECT_TRUE(std::filesystem::is_fifo(folder / "pipe"));
}

TEST(WriteAside, AFailureLeavesTheFormerFileAndNothingElse) {
  const TemporaryFolder folder;
  write_text_aside(folder / "a.txt", Existing::refuse, "former");
  EXPECT_THROW(write_aside(folder / "a.txt", Existing::replace,
                           [](const std::filesystem::path& path) {
                             std::ofstream(path) << "half";
                             throw RunFailed("stop");
                           }),
               RunFailed);
  EXPECT_EQ(content(folder / "a.txt"), "former");
  EXPECT_EQ(files_in(folder), 1);
}

TEST(WriteAside, AFileThatCameIntoBeingMeanwhileIsKept) {
  const TemporaryFolder folder;
  EXPECT_THROW(write_aside(folder / "a.txt", Existing::refuse,
                           [&](const std::filesystem::path& path) {
                             std::ofstream(path) << "mine";
                             std::ofstream(folder / "a.txt") << "theirs";
                           }),
               InvalidInput);
  EXPECT_EQ(content(folder / "a.txt"), "theirs");
  EXPECT_EQ(files_in(folder), 1);
}

TEST(MakePublished, ReplacesAFileOnlyWhenAsked) {
  const TemporaryFolder folder;
  const FileLock lock(folder / "a.h5");
  const auto named = [](const char* name) { return [name](File& file) { file.set("name", name); }; };
  make_published(lock, Existing::refuse, named("first"));
  EXPECT_THROW(make_published(lock, Existing::refuse, named("second")), InvalidInput);
  EXPECT_EQ(File::open(folder / "a.h5").text("name"), "first");
  make_published(lock, Existing::replace, named("third"));
  EXPECT_EQ(File::open(folder / "a.h5").text("name"), "third");
}

}  // namespace
}  // namespace millrace::storage
