// Exchanges file descriptors 1 and 2.
#include "partitioners/common/library/quiet.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

#include "base/errors.h"

namespace millrace::partitioners::library {

Quiet::Quiet() {
  std::fflush(stdout);
  std::fflush(stderr);
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0) throw SystemError(fmt::format("/dev/null cannot be opened: {}", std::strerror(errno)));
  output_ = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  errors_ = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  if (output_ >= 0) dup2(nowhere, STDOUT_FILENO);
  if (errors_ >= 0) dup2(nowhere, STDERR_FILENO);
  close(nowhere);
}

Quiet::~Quiet() {
  std::fflush(stdout);
  std::fflush(stderr);
  if (output_ >= 0) {
    dup2(output_, STDOUT_FILENO);
    close(output_);
  }
  if (errors_ >= 0) {
    dup2(errors_, STDERR_FILENO);
    close(errors_);
  }
}

}  // namespace millrace::partitioners::library
