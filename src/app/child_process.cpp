// A pipe, a fork and the resource usage of the child.
#include "app/child_process.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

namespace millrace::app {
namespace {

void write_all(int file, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = ::write(file, text.data() + done, text.size() - done);
    if (count < 0 && errno != EINTR) return;  // the parent is gone
    if (count > 0) done += static_cast<std::size_t>(count);
  }
}

[[noreturn]] void run_child(const std::function<std::string()>& work, int out, pid_t parent) {
  ::setpgid(0, 0);  // what it starts is ended with it
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(static_cast<int>(ExitCode::internal));  // gone before it could be watched
  ExitCode code = ExitCode::done;
  std::string text;
  try {
    text = work();
  } catch (const Error& error) {
    code = error.code();
    text = error.what();
  } catch (const std::exception& error) {
    code = ExitCode::internal;
    text = error.what();
  }
  write_all(out, text);
  ::_exit(static_cast<int>(code));  // the parent's buffers and exit handlers are not the child's to run
}

}  // namespace

Child::Child(const std::function<std::string()>& work) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw SystemError(fmt::format("pipe: {}", std::strerror(errno)));
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) {
    ::close(ends[0]);
    run_child(work, ends[1], parent);
  }
  const int failure = errno;
  ::close(ends[1]);
  output_ = ends[0];
  if (pid_ < 0) {
    ::close(output_);
    throw SystemError(fmt::format("fork: {}", std::strerror(failure)));
  }
  ::setpgid(pid_, pid_);  // here too: whoever comes first
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), output_(std::exchange(other.output_, -1)), text_(std::move(other.text_)) {}

Child::~Child() {
  if (output_ >= 0) ::close(output_);
  if (pid_ < 0) return;
  kill();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool Child::read_some() {
  char buffer[1 << 16];
  const ssize_t count = ::read(output_, buffer, sizeof buffer);
  if (count < 0 && errno == EINTR) return true;
  if (count <= 0) return false;
  text_.append(buffer, static_cast<std::size_t>(count));
  return true;
}

ChildOutcome Child::wait() {
  while (read_some()) {
  }
  ChildOutcome outcome;
  outcome.text = std::move(text_);
  int status = 0;
  rusage usage{};
  while (::wait4(pid_, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  outcome.peak_rss_bytes = usage.ru_maxrss * 1024;  // Linux gives KiB
  if (WIFEXITED(status)) {
    outcome.code = static_cast<ExitCode>(WEXITSTATUS(status));
  } else {
    outcome.code = ExitCode::internal;
    outcome.text = fmt::format("ended by {}", ::strsignal(WTERMSIG(status)));
  }
  return outcome;
}

void Child::kill() const {
  if (pid_ < 0) return;
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);  // where it had no time to make its group
}

ChildOutcome in_child(const std::function<std::string()>& work) { return Child(work).wait(); }

}  // namespace millrace::app
