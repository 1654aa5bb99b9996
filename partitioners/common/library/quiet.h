// Keeps a library from writing to the terminal: plans are printed as one document there.
#pragma once

namespace millrace::partitioners::library {

/// While it lives, what is written to standard output and error of this process is dropped. For short calls into
/// libraries that print on their own; one at a time.
class Quiet {
 public:
  /// \throws SystemError  when the streams cannot be exchanged.
  Quiet();
  ~Quiet();
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  int output_ = -1, errors_ = -1;  // what the streams were
};

}  // namespace millrace::partitioners::library
