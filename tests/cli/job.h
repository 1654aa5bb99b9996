// Runs the product as a user does, alone or under mpirun, and keeps what it said.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "tests/storage/temporary_folder.h"

namespace millrace::cli {

/// What a job left behind.
struct Outcome {
  int code = -1;  ///< exit code; 128 + signal if a signal ended it
  std::string out;
  std::string err;

  /// Lines of standard error in which millrace reports an error.
  std::vector<std::string> errors() const;
};

struct JobOptions {
  int ranks = 0;  ///< 0: alone, without mpirun
  std::vector<std::pair<std::string, std::string>> environment{};
  std::vector<std::string> before{};  ///< words before the launcher, such as taskset
  std::string script{};               ///< started by mpirun in place of millrace, with its path and words
};

/// A folder in which jobs run; it is their working directory, so that what is left of them can be found.
class Workplace {
 public:
  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }
  /// Writes a file and returns its name, which is relative to the folder.
  std::string write(const std::string& name, const std::string& text) const;

  /// Runs `millrace words…` to its end. A job that takes longer than two minutes is killed and fails the test: its code is then 137.
  Outcome run(const std::vector<std::string>& words, const JobOptions& options = {}) const;

  /// Processes that run in this folder, zombies not counted, ascending.
  std::vector<pid_t> processes() const;
  /// Those of them that do not end within a few seconds: none, where a job ended as it should.
  std::vector<pid_t> left_over() const;

 private:
  friend class Job;
  storage::TemporaryFolder folder_;
};

/// A job in the background; killed with all its ranks when it is given up.
class Job {
 public:
  Job(const Workplace& place, const std::vector<std::string>& words, const JobOptions& options);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job();

  /// Waits for the end. Where the launcher stays behind ranks that have all ended, their code is the job's.
  Outcome wait();
  /// Waits until `holds`. \throws std::runtime_error  when the job ends before, or after a minute.
  void until(const std::string& what, const std::function<bool()>& holds) const;
  /// The process of a rank, once all ranks run.
  pid_t rank(int number) const;

 private:
  void kill_all() const;

  const Workplace& place_;
  int ranks_;
  pid_t pid_ = -1;
  double started_ = 0;
};

}  // namespace millrace::cli
