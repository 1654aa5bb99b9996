// Runs a function in a process of its own, so that its peak memory is its own and a crash ends only it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/errors.h"

namespace millrace::app {

/// What came back.
struct ChildOutcome {
  ExitCode code = ExitCode::done;
  std::string text;  ///< what the function returned; the message where it threw
  std::int64_t peak_rss_bytes = 0;
};

/// Runs `work` in a child and waits for it. An exception of `work` becomes its code and message; a signal becomes
/// ExitCode::internal with the signal's name.
/// \pre this process has one thread, and no MPI.
/// \throws SystemError  when no process can be made.
ChildOutcome in_child(const std::function<std::string()>& work);

}  // namespace millrace::app
