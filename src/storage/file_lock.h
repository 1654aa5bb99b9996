// One writer a file: FILE.lock says which process on which host writes FILE (INTERFACES 9).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace millrace::storage {

/// Who wrote a lock file.
struct LockHolder {
  std::string host;
  std::int64_t pid = 0;
  std::uint64_t started = 0;  ///< in clock ticks since boot: tells a reused pid from its first owner
  std::string job;            ///< of the batch system, "none" outside one
};

/// Holds `FILE.lock` for as long as it lives. A lock whose process on this host is gone is taken over with a notice.
/// \throws InvalidInput naming host and pid while another process holds it: always if that process lives on this host;
///   for another host, where nobody can tell, unless `overwrite` is given (--overwrite-lock).
/// \throws SystemError when the lock file cannot be written.
class FileLock {
 public:
  explicit FileLock(std::filesystem::path file, bool overwrite = false);
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

  const std::filesystem::path& file() const { return file_; }
  std::filesystem::path lock_file() const { return file_.string() + ".lock"; }

 private:
  bool make();
  bool take_over(bool overwrite);

  std::filesystem::path file_;
  LockHolder self_;
};

/// Whether some process holds the lock of `file`, as far as this host can tell: one of another host counts as alive.
bool is_held(const std::filesystem::path& file);

}  // namespace millrace::storage
