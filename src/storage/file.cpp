// HDF5 files: opened for reading, made exclusively, or opened for writing by the holder of their lock.
#include "storage/file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

#include "base/errors.h"
#include "storage/file_lock.h"
#include "storage/hdf5_call.h"

namespace millrace::storage {
namespace {

Handle file_access(const std::string& where) {
  Handle access = own(H5Pcreate(H5P_FILE_ACCESS), where, "H5Pcreate");
  check(H5Pset_fclose_degree(access.id(), H5F_CLOSE_STRONG), where, "H5Pset_fclose_degree");
  check(H5Pset_libver_bounds(access.id(), H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST), where, "H5Pset_libver_bounds");
  check(H5Pset_file_locking(access.id(), false, true), where, "H5Pset_file_locking");
  return access;
}

Handle root_of(const Handle& file, const std::string& where) {
  return own(H5Gopen2(file.id(), "/", H5P_DEFAULT), where, "H5Gopen2");
}

/// Names what is wrong with a file before HDF5 words it less clearly.
void require_readable(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) throw InvalidInput(path.string() + ": no such file");
  if (std::filesystem::is_directory(path, ignored)) throw InvalidInput(path.string() + ": is a folder, not a file");
  if (::access(path.c_str(), R_OK) != 0) {
    throw InvalidInput(fmt::format("{}: cannot be read: {}", path.string(), std::strerror(errno)));
  }
  std::ifstream in(path, std::ios::binary);
  char signature[8] = {};
  in.read(signature, sizeof signature);
  if (in.gcount() != 8 || std::memcmp(signature, "\x89HDF\r\n\x1a\n", 8) != 0) {
    throw InvalidInput(path.string() + ": not an HDF5 file");
  }
}

Handle open_existing(const std::filesystem::path& path, unsigned flags) {
  require_readable(path);
  const LibraryLock lock;
  const Handle access = file_access(path.string());
  Handle file(H5Fopen(path.c_str(), flags, access.id()));
  if (file.valid()) return file;
  const std::string cause = error_stack();
  if (cause.find("truncated file") != std::string::npos) {
    throw InvalidInput(
        fmt::format("{}: truncated: {} bytes found ({})", path.string(), std::filesystem::file_size(path), cause));
  }
  fail(path.string(), "H5Fopen");
}

}  // namespace

File::File(Handle file, const std::filesystem::path& path)
    : Group(root_of(file, path.string()), path.string(), "/"), handle_of_file_(std::move(file)), path_(path) {}

File& File::operator=(File&& other) noexcept {
  if (this != &other) {
    close_quietly();
    Group::operator=(std::move(other));
    handle_of_file_ = std::move(other.handle_of_file_);
    path_ = std::move(other.path_);
  }
  return *this;
}

File::~File() { close_quietly(); }

File File::open(const std::filesystem::path& path) {
  const LibraryLock lock;
  return {open_existing(path, H5F_ACC_RDONLY), path};
}

File File::modify(const FileLock& held) {
  const LibraryLock lock;
  return {open_existing(held.file(), H5F_ACC_RDWR), held.file()};
}

File File::make(const std::filesystem::path& path) {
  if (std::filesystem::exists(path)) throw InvalidInput(path.string() + ": exists already");
  const LibraryLock lock;
  const Handle access = file_access(path.string());
  // Exclusive: a file that another process made since is refused by the system itself.
  Handle file = own(H5Fcreate(path.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, access.id()), path.string(), "H5Fcreate");
  return {std::move(file), path};
}

File File::in_memory(const std::filesystem::path& path) {
  const LibraryLock lock;
  const Handle access = file_access(path.string());
  constexpr std::size_t kStep = std::size_t{1} << 20;
  check(H5Pset_fapl_core(access.id(), kStep, false), path.string(), "H5Pset_fapl_core");
  Handle file = own(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.id()), path.string(), "H5Fcreate");
  return {std::move(file), path};
}

void File::flush() {
  const LibraryLock lock;
  check(H5Fflush(handle_of_file_.id(), H5F_SCOPE_GLOBAL), where(), "H5Fflush");
}

void File::close() {
  const LibraryLock lock;
  flush();
  void* descriptor = nullptr;
  check(H5Fget_vfd_handle(handle_of_file_.id(), H5P_DEFAULT, &descriptor), where(), "H5Fget_vfd_handle");
  if (::fsync(*static_cast<int*>(descriptor)) != 0 && errno != EROFS && errno != EINVAL) {
    throw SystemError(fmt::format("{}: fsync failed: {}", where(), std::strerror(errno)));
  }
  handle_.reset();
  check(H5Fclose(handle_of_file_.release()), where(), "H5Fclose");
}

std::string File::image() {
  const LibraryLock lock;
  flush();
  const auto size = H5Fget_file_image(handle_of_file_.id(), nullptr, 0);
  if (size < 0) fail(where(), "H5Fget_file_image");
  std::string bytes(static_cast<std::size_t>(size), '\0');
  if (H5Fget_file_image(handle_of_file_.id(), bytes.data(), bytes.size()) < 0) fail(where(), "H5Fget_file_image");
  return bytes;
}

void File::close_quietly() noexcept {
  if (!handle_of_file_.valid()) return;
  const LibraryLock lock;
  handle_.reset();
  H5Fclose(handle_of_file_.release());
}

}  // namespace millrace::storage
