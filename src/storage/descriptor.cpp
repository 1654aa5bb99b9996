// Owner of a file descriptor with whole reads and writes.
#include "storage/descriptor.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <unistd.h>

#include "base/errors.h"

namespace millrace::storage {
namespace {

[[noreturn]] void refuse(const std::string& path, const char* call) {
  throw SystemError(fmt::format("{}: {} failed: {}", path, call, std::strerror(errno)));
}

}  // namespace

Descriptor::~Descriptor() {
  if (valid()) ::close(number_);
}

std::string Descriptor::read_all(const std::string& path) const {
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t got = ::pread(number_, buffer, sizeof buffer, static_cast<off_t>(text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse(path, "read");
    if (got == 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

void Descriptor::write_all(std::string_view text, const std::string& path) const {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t put = ::pwrite(number_, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) refuse(path, "write");
    done += static_cast<std::size_t>(put);
  }
}

void Descriptor::sync(const std::string& path) const {
  if (::fsync(number_) != 0 && errno != EINVAL && errno != EROFS) refuse(path, "fsync");
}

}  // namespace millrace::storage
