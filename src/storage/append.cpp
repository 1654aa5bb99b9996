// One write at the end of a file, then fsync.
#include "storage/append.h"

#include <cerrno>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/errors.h"
#include "storage/descriptor.h"

namespace millrace::storage {

void append_line(const std::filesystem::path& file, std::string_view line) {
  const Descriptor open(::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644));
  const auto fail = [&](const char* call) {
    throw SystemError(fmt::format("{}: {} failed: {}", file.string(), call, std::strerror(errno)));
  };
  if (!open.valid()) fail("open");
  const std::string text = std::string(line) + "\n";
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t put = ::write(open.number(), text.data() + done, text.size() - done);
    if (put < 0 && errno != EINTR) fail("write");
    if (put > 0) done += static_cast<std::size_t>(put);
  }
  open.sync(file.string());
}

}  // namespace millrace::storage
