// Which HDF5 this process runs with.
#pragma once

#include <string>

namespace millrace::storage {

struct LibraryVersion {
  std::string library;  ///< "1.10.8", the one that was loaded
  std::string headers;  ///< the one that millrace was compiled with
};

/// Asked here only: the library must not start outside this room (see LibraryLock).
LibraryVersion hdf5_version();

}  // namespace millrace::storage
