// How this room calls HDF5: one thread at a time, no printing, every return code checked. Private to the room.
#include "storage/hdf5_call.h"

#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/text.h"

namespace millrace::storage {
namespace {

std::recursive_mutex& library_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

// Of a system call that failed the library tells all it knows, addresses too; what it was and why is enough.
std::string short_cause(const std::string& text) {
  constexpr std::string_view kMessage = "error message = '";
  const auto message = text.find(kMessage), colon = text.find(": ");
  if (message == std::string::npos || colon == std::string::npos) return text;
  const std::string why = text.substr(message + kMessage.size());
  return text.substr(0, colon + 2) + why.substr(0, why.find('\''));
}

herr_t collect(unsigned, const H5E_error2_t* error, void* into) {
  auto& causes = *static_cast<std::vector<std::string>*>(into);
  if (error->desc != nullptr && error->desc[0] != '\0') causes.push_back(short_cause(error->desc));
  return 0;
}

}  // namespace

LibraryLock::LibraryLock() : lock_(library_mutex()) {
  // Before its first use: the library's clean-up at exit closes once more what a full disk kept from closing, and
  // crashes. Files close in their owners' destructors instead.
  static const bool left_to_owners = H5dont_atexit() >= 0;
  static_cast<void>(left_to_owners);
  // The error stack of a thread-safe library belongs to the thread, hence once a thread.
  static thread_local bool silent = false;
  if (!silent) silent = H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr) >= 0;
}

std::string error_stack() {
  std::vector<std::string> causes;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, collect, &causes);
  constexpr std::size_t kEnough = 3;  // the innermost say what happened, the outer ones only repeat it
  if (causes.size() > kEnough) causes.resize(kEnough);
  return causes.empty() ? "no cause given" : join(causes, "; ");
}

void fail(std::string_view where, std::string_view call) {
  const std::string cause = error_stack();
  const bool locking = cause.find("unable to lock file") != std::string::npos;
  throw SystemError(fmt::format(
      "{}: {} failed: {}{}", where, call, cause,
      locking ? "\nhint: the file system refuses file locks, or another program holds the file; where it has no "
                "locks set HDF5_USE_FILE_LOCKING=FALSE"
              : ""));
}

}  // namespace millrace::storage
