// How this room calls HDF5: one thread at a time, no printing, every return code checked. Private to the room.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include <hdf5.h>

#include "storage/handle.h"

namespace millrace::storage {

/// Held around every use of the library: HDF5 may be built without thread safety, and a prefetching thread reads
/// while the main thread writes results. Silences the library's own error printing for this thread.
class LibraryLock {
 public:
  LibraryLock();

 private:
  std::unique_lock<std::recursive_mutex> lock_;
};

/// The library's own account of its last failure on this thread, innermost cause first.
std::string error_stack();

/// SystemError "WHERE: CALL failed: CAUSE", with a hint where the cause is a file system without locks.
[[noreturn]] void fail(std::string_view where, std::string_view call);

/// Returns `result` unless it is negative, HDF5's sign of failure.
template <class Result>
Result check(Result result, std::string_view where, std::string_view call) {
  if (result < 0) fail(where, call);
  return result;
}

/// The same for a call that makes something to be closed.
inline Handle own(hid_t id, std::string_view where, std::string_view call) { return Handle(check(id, where, call)); }

}  // namespace millrace::storage
