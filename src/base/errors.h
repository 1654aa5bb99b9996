// The errors that leave a room, each with the exit code that the command returns for it (INTERFACES 1).
#pragma once

#include <stdexcept>
#include <string>

namespace millrace {

/// Exit codes of every command.
enum class ExitCode : int {
  done = 0,
  internal = 1,       ///< a fault of millrace itself
  usage = 2,          ///< the command line or a file that the user wrote
  infeasible = 3,     ///< the search found no plan that fits
  failed = 4,         ///< a rank, memory, storage or numerics failed
  verification = 5,   ///< results differ that must not
};

/// Base of all errors that a user sees: a message and the exit code of the command.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

/// The user can fix it: says what, where, what is allowed and the nearest valid name.
class InvalidInput : public Error {
 public:
  explicit InvalidInput(const std::string& message) : Error(ExitCode::usage, message) {}
};

/// A run could not go on: numerics, memory, a stalled or lost rank.
class RunFailed : public Error {
 public:
  explicit RunFailed(const std::string& message) : Error(ExitCode::failed, message) {}
};

/// A library or the system refused a call: names the call and its code (MPI, HDF5, files).
class SystemError : public Error {
 public:
  explicit SystemError(const std::string& message) : Error(ExitCode::failed, message) {}
};

}  // namespace millrace
