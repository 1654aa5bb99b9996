// Owner of one HDF5 identifier, so that no HDF5 type appears in a public header.
#include "storage/handle.h"

#include "storage/hdf5_call.h"

namespace millrace::storage {

static_assert(sizeof(hid_t) == sizeof(std::int64_t), "Handle keeps an HDF5 identifier in 64 bits");

Handle& Handle::operator=(Handle&& other) noexcept {
  if (this != &other) {
    reset();
    id_ = std::exchange(other.id_, kNone);
  }
  return *this;
}

void Handle::reset() noexcept {
  if (!valid()) return;
  const LibraryLock lock;
  // False for an object that its file's close has closed already.
  if (H5Iis_valid(id_) > 0) H5Idec_ref(id_);
  id_ = kNone;
}

}  // namespace millrace::storage
