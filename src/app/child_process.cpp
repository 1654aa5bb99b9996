// A pipe, a fork and the resource usage of the child.
#include "app/child_process.h"

#include <cerrno>
#include <cstring>
#include <exception>

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

std::string read_all(int file) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t count = ::read(file, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(count));
  }
}

[[noreturn]] void run_child(const std::function<std::string()>& work, int out) {
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

ChildOutcome in_child(const std::function<std::string()>& work) {
  int ends[2];
  if (::pipe(ends) != 0) throw SystemError(fmt::format("pipe: {}", std::strerror(errno)));
  const pid_t child = ::fork();
  if (child < 0) throw SystemError(fmt::format("fork: {}", std::strerror(errno)));
  if (child == 0) {
    ::close(ends[0]);
    run_child(work, ends[1]);
  }
  ::close(ends[1]);
  ChildOutcome outcome;
  outcome.text = read_all(ends[0]);
  ::close(ends[0]);
  int status = 0;
  rusage usage{};
  while (::wait4(child, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  outcome.peak_rss_bytes = usage.ru_maxrss * 1024;  // Linux gives KiB
  if (WIFEXITED(status)) {
    outcome.code = static_cast<ExitCode>(WEXITSTATUS(status));
  } else {
    outcome.code = ExitCode::internal;
    outcome.text = fmt::format("ended by {}", ::strsignal(WTERMSIG(status)));
  }
  return outcome;
}

}  // namespace millrace::app
