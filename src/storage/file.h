// HDF5 files: opened for reading, made exclusively, or opened for writing by the holder of their lock.
#pragma once

#include <filesystem>
#include <string>

#include "storage/group.h"

namespace millrace::storage {

class FileLock;

/// An open HDF5 file, and its root group. The format is the earliest one: it opens after a kill without repair
/// (REPORTS L01). HDF5's own file locks are off: FileLock keeps writers apart, readers may look at a running
/// file (REPORTS L07), and file systems without locks work (REPORTS L03); HDF5_USE_FILE_LOCKING=TRUE forces them on.
class File : public Group {
 public:
  /// For reading. \throws InvalidInput for a missing, foreign or truncated file.
  static File open(const std::filesystem::path& path);
  /// Makes a new file. Never touches an existing one: \throws InvalidInput.
  static File make(const std::filesystem::path& path);
  /// For writing to an existing file, which only the holder of its lock may do.
  static File modify(const FileLock& lock);
  /// A file that lies in memory only and grows there. \param path  for messages.
  static File in_memory(const std::filesystem::path& path);

  File(File&&) = default;
  File& operator=(File&& other) noexcept;
  ~File();

  /// Everything written so far is in the file, where other processes see it and a kill cannot take it.
  void flush();
  /// Flushes to the disk itself and closes, objects of the file included. Without it the destructor closes quietly.
  void close();
  /// What the file would be on a disk, as it is now.
  std::string image();

 private:
  File(Handle file, const std::filesystem::path& path);
  void close_quietly() noexcept;

  Handle handle_of_file_;
  std::filesystem::path path_;
};

}  // namespace millrace::storage
