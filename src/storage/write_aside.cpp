// Files that appear whole or not at all: written under another name, put on the disk, renamed.
#include "storage/write_aside.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/errors.h"
#include "storage/descriptor.h"

namespace millrace::storage {
namespace {

[[noreturn]] void refuse_existing(const std::filesystem::path& target) {
  throw InvalidInput(target.string() + ": exists already; pass --overwrite to replace it");
}

void sync(const std::filesystem::path& path, int flags) {
  const Descriptor open(::open(path.c_str(), flags | O_CLOEXEC));
  if (!open.valid()) throw SystemError(fmt::format("{}: open failed: {}", path.string(), std::strerror(errno)));
  open.sync(path.string());
}

std::filesystem::path folder_of(const std::filesystem::path& target) {
  return target.has_parent_path() ? target.parent_path() : std::filesystem::path(".");
}

/// What a symbolic link leads to, which need not be there.
std::filesystem::path followed(std::filesystem::path target) {
  constexpr int kMostLinks = 40;  // as the system
  std::error_code failure;
  for (int links = 0; links < kMostLinks && std::filesystem::is_symlink(target, failure); ++links) {
    target = folder_of(target) / std::filesystem::read_symlink(target);  // an absolute one wins
  }
  return target;
}

/// Beside the target, since a rename works only within a file system; one a process.
std::filesystem::path temporary_for(const std::filesystem::path& target) {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  return fmt::format("{}.{}-{}.partial", target.string(), host, ::getpid());
}

void publish(const std::filesystem::path& temporary, const std::filesystem::path& target, Existing existing) {
  if (existing == Existing::refuse) {
    // A link fails where the name has come into being since; a rename would replace it.
    if (::link(temporary.c_str(), target.c_str()) == 0) {
      ::unlink(temporary.c_str());
      return;
    }
    if (errno == EEXIST || std::filesystem::exists(target)) refuse_existing(target);
    // File systems without links: the check above has to do.
  }
  if (::rename(temporary.c_str(), target.c_str()) != 0) {
    throw SystemError(fmt::format("{}: rename failed: {}", target.string(), std::strerror(errno)));
  }
}

}  // namespace

void check_target(const std::filesystem::path& target, Existing existing) {
  std::error_code failure;  // no permission to look: the writing says so
  const auto status = std::filesystem::status(target, failure);
  if (!std::filesystem::exists(status)) return;
  if (std::filesystem::is_directory(status)) throw InvalidInput(target.string() + ": is a folder, not a file");
  // A rename would put a file in the place of a device or a pipe.
  if (!std::filesystem::is_regular_file(status)) throw InvalidInput(target.string() + ": is not a regular file");
  if (existing == Existing::refuse) refuse_existing(target);
}

void write_aside(const std::filesystem::path& target_or_link, Existing existing,
                 const std::function<void(const std::filesystem::path&)>& write) {
  check_target(target_or_link, existing);
  const std::filesystem::path target = followed(target_or_link);
  std::error_code failure;
  std::filesystem::create_directories(folder_of(target), failure);
  if (failure) {
    throw SystemError(fmt::format("{}: cannot be made: {}", folder_of(target).string(), failure.message()));
  }
  const std::filesystem::path temporary = temporary_for(target);
  std::filesystem::remove(temporary);  // of a dead process that had the same number
  try {
    write(temporary);
    sync(temporary, O_RDONLY);
    publish(temporary, target, existing);
  } catch (...) {
    std::filesystem::remove(temporary, failure);
    throw;
  }
  sync_folder(folder_of(target));
}

void sync_folder(const std::filesystem::path& folder) { sync(folder, O_RDONLY | O_DIRECTORY); }

void write_text_aside(const std::filesystem::path& target, Existing existing, std::string_view text) {
  write_aside(target, existing, [text](const std::filesystem::path& path) {
    const Descriptor made(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!made.valid()) throw SystemError(fmt::format("{}: open failed: {}", path.string(), std::strerror(errno)));
    made.write_all(text, path.string());
  });
}

}  // namespace millrace::storage
