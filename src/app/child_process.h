// Runs a function in a process of its own, so that its peak memory is its own and a crash ends only it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <sys/types.h>

#include "base/errors.h"

namespace millrace::app {

/// What came back.
struct ChildOutcome {
  ExitCode code = ExitCode::done;
  std::string text;  ///< what the function returned; the message where it threw
  std::int64_t peak_rss_bytes = 0;
};

/// A child at work; it ends with its parent. Given up, it is killed.
class Child {
 public:
  /// \throws SystemError  when no process can be made.
  /// \pre no other thread of this process holds a lock that `work` needs; `work` calls no MPI.
  explicit Child(const std::function<std::string()>& work);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();

  /// Ready to read whenever the child has written or ended.
  int output() const { return output_; }
  /// Takes what the child has written. False once it has said everything: wait() then returns soon.
  bool read_some();
  /// Reads the rest and waits for the end. An exception of the function becomes its code and message; a signal becomes
  /// ExitCode::internal with the signal's name.
  ChildOutcome wait();
  /// Ends it and what it started at once.
  void kill() const;

 private:
  pid_t pid_ = -1;
  int output_ = -1;
  std::string text_;
};

/// Runs `work` in a child and waits for it.
ChildOutcome in_child(const std::function<std::string()>& work);

}  // namespace millrace::app
