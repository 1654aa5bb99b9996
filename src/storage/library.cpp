// Versions of HDF5, as the library and its headers tell them.
#include "storage/library.h"

#include <fmt/format.h>

#include "storage/hdf5_call.h"

namespace millrace::storage {

LibraryVersion hdf5_version() {
  const LibraryLock lock;
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return {fmt::format("{}.{}.{}", major, minor, release),
          fmt::format("{}.{}.{}", H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE)};
}

}  // namespace millrace::storage
