// The results file of one run (INTERFACES 6): tables that survive a kill, and the context they were made in.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "program/run_rows.h"
#include "program/timeline.h"
#include "record/data_table.h"
#include "storage/file.h"
#include "storage/file_lock.h"
#include "storage/table.h"

namespace millrace::record {

/// A named number or text, stored as an attribute.
struct Fact {
  std::string name;
  std::variant<std::int64_t, double, std::string> value;
};

/// Everything known before the first iteration.
struct RunContext {
  std::vector<Fact> root;  ///< attributes of `/`: version, command, host, seed, libraries, …
  std::string config;      ///< effective experiment, YAML
  std::string plan;        ///< plan, YAML
  std::string cluster;     ///< YAML
  std::int64_t iterations = 0;
  std::int64_t evaluations = 0;
  std::int64_t batch = 0;  ///< throughput of a row is its samples over its time
};

/// One rank's row of `/ranks`.
struct RankRow {
  std::int64_t rank = 0;
  std::string host;
  std::int64_t device = 0;
  std::int64_t pipeline = 0;
  std::string stages;
  std::int64_t threads = 1;
  RankReport report;
  std::int64_t predicted_peak_bytes = 0;
};

struct ResultsOptions {
  bool overwrite = false;
  bool overwrite_lock = false;
  /// Goes on with the tables of an existing file after this iteration: later rows are dropped, as are the tables of the
  /// end. None: a new file.
  std::optional<std::int64_t> resume_after{};
};

/// Made exclusively under its own lock before training starts; rows are in the file at most a second after they
/// were made, whatever follows them: a thread of its own flushes. An error of that thread is thrown by the next call.
/// `status` is running until close(); a file left behind by a kill says so truthfully.
class ResultsFile {
 public:
  /// \throws InvalidInput  when the file exists and may not be replaced, or another run holds it (names the holder).
  ResultsFile(const std::filesystem::path& file, const RunContext& context, const ResultsOptions& options);
  ResultsFile(const ResultsFile&) = delete;
  ResultsFile& operator=(const ResultsFile&) = delete;
  ~ResultsFile();

  void add(const IterationRow& row, std::int64_t samples_of_row);
  void add(const EvaluationRow& row);
  void add(const std::vector<RankRow>& ranks);
  /// `/instructions`, with the predicted seconds of each row (as long as `measured`, or empty: stored as -1).
  void add(const std::vector<TimelineRow>& measured, std::int64_t iteration, const std::vector<double>& predicted_s);
  void add(const std::string& name, const DataTable& table, const std::string& description);
  void add_group(const std::string& name, const std::vector<Fact>& facts);

  /// The rows so far are on the disk when it returns.
  void keep();

  /// Rows and `status` ("complete", "failed", "interrupted") are on the disk when it returns.
  void close(const std::string& status);

 private:
  void added();
  void flush();
  void keep_flushing();
  void stop();
  void rethrow_failure();

  storage::FileLock lock_;
  std::mutex mutex_;  ///< of all below
  std::optional<storage::File> file_;
  std::optional<storage::Table> iterations_;
  std::optional<storage::Table> evaluations_;
  bool waiting_rows_ = false;  ///< added since the last flush
  bool stop_ = false;
  std::exception_ptr failure_;
  std::condition_variable wake_;
  std::thread flusher_;  ///< last: it uses all of the above
};

}  // namespace millrace::record
