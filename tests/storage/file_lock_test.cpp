// One writer a file: who may take a lock, and what the refusal says.
#include "storage/file_lock.h"

#include <csignal>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/errors.h"
#include "tests/storage/expect_error.h"
#include "tests/storage/temporary_folder.h"

namespace millrace::storage {
namespace {

std::string this_host() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

void write_lock(const std::filesystem::path& path, const std::string& host, std::int64_t pid, int started = 0) {
  std::ofstream(path) << fmt::format("host: {}\npid: {}\nstarted: {}\njob: 42\n", host, pid, started);
}

pid_t dead_process() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return child;
}

TEST(FileLock, IsHeldForItsLifeAndNamesItsHolder) {
  const TemporaryFolder folder;
  {
    const FileLock lock(folder / "a.h5");
    EXPECT_TRUE(std::filesystem::exists(folder / "a.h5.lock"));
    const std::string pid = fmt::format("process {}", ::getpid());
    expect_error<InvalidInput>([&] { FileLock(folder / "a.h5"); }, {"a.h5: is being written by", pid, this_host()});
    expect_error<InvalidInput>([&] { FileLock(folder / "a.h5", true); }, {pid});  // it lives: no flag takes it
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "a.h5.lock"));
}

TEST(FileLock, OfAnotherLivingProcessIsRefused) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  write_lock(folder / "a.h5.lock", this_host(), child);
  expect_error<InvalidInput>([&] { FileLock(folder / "a.h5"); },
                             {fmt::format("process {} on host {} (job 42)", child, this_host())});
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_NO_THROW(FileLock(folder / "a.h5"));
}

TEST(FileLock, OfADeadProcessIsTakenOverWithANotice) {
  const TemporaryFolder folder;
  const pid_t gone = dead_process();
  write_lock(folder / "a.h5.lock", this_host(), gone);
  ::testing::internal::CaptureStderr();
  {
    const FileLock lock(folder / "a.h5");
    EXPECT_THROW(FileLock(folder / "a.h5"), InvalidInput);
  }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::HasSubstr(fmt::format("process {} on host {}, which is gone", gone, this_host())));
  EXPECT_FALSE(std::filesystem::exists(folder / "a.h5.lock"));
}

TEST(FileLock, OfAKilledProcessThatItsParentHasNotLookedAtIsTakenOver) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t ended{};
  ::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);  // ended, and still in the table
  write_lock(folder / "a.h5.lock", this_host(), child);
  EXPECT_NO_THROW(FileLock(folder / "a.h5"));
  ::waitpid(child, nullptr, 0);
}

TEST(FileLock, AReusedPidIsNotItsFirstOwner) {
  const TemporaryFolder folder;
  write_lock(folder / "a.h5.lock", this_host(), ::getpid(), 1);  // this process did not start at tick 1
  EXPECT_NO_THROW(FileLock(folder / "a.h5"));
}

TEST(FileLock, OfAnotherHostNeedsTheFlag) {
  const TemporaryFolder folder;
  write_lock(folder / "a.h5.lock", "elsewhere", dead_process());
  expect_error<InvalidInput>([&] { FileLock(folder / "a.h5"); }, {"on host elsewhere", "--overwrite-lock"});
  EXPECT_NO_THROW(FileLock(folder / "a.h5", true));
}

TEST(FileLock, ThatNamesNobodyNeedsTheFlag) {
  const TemporaryFolder folder;
  std::ofstream(folder / "a.h5.lock") << "";
  expect_error<InvalidInput>([&] { FileLock(folder / "a.h5"); }, {"does not name its holder", "--overwrite-lock"});
  EXPECT_NO_THROW(FileLock(folder / "a.h5", true));
}

TEST(FileLock, InAMissingFolderIsASystemError) {
  const TemporaryFolder folder;
  expect_error<SystemError>([&] { FileLock(folder / "none/a.h5"); }, {"a.h5.lock: open failed", "No such file"});
}

TEST(FileLock, OfTwoThatFindItStaleOneWins) {
  for (int round = 0; round < 20; ++round) {
    const TemporaryFolder folder;
    write_lock(folder / "a.h5.lock", this_host(), dead_process());
    int start[2], held[2];
    ASSERT_EQ(::pipe(start), 0);
    ASSERT_EQ(::pipe(held), 0);
    pid_t children[4];
    for (pid_t& child : children) {
      child = ::fork();
      if (child != 0) continue;
      char byte = 0;
      ::close(start[1]);
      if (::read(start[0], &byte, 1) != 0) ::_exit(3);  // ends when the parent lets all go at once
      try {
        const FileLock lock(folder / "a.h5");
        if (::write(held[1], "1", 1) != 1) ::_exit(3);
        ::pause();
      } catch (const InvalidInput&) {
        ::_exit(2);
      }
    }
    ::close(start[1]);
    int refused = 0;
    char byte = 0;
    EXPECT_EQ(::read(held[0], &byte, 1), 1);
    for (int i = 0; i < 3; ++i) {
      int status = 0;
      ::waitpid(-1, &status, 0);
      refused += WIFEXITED(status) && WEXITSTATUS(status) == 2 ? 1 : 0;
    }
    EXPECT_EQ(refused, 3);
    for (const pid_t child : children) ::kill(child, SIGKILL);
    while (::waitpid(-1, nullptr, 0) > 0) {}
    for (const int end : {start[0], held[0], held[1]}) ::close(end);
  }
}

}  // namespace
}  // namespace millrace::storage
