// Where the results of a sweep are kept: the log line by line; HDF5 and CSV at every tenth cell, where cells take long
// at each, and at the end.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "app/sweep_cells.h"
#include "record/cell_log.h"
#include "record/cells_file.h"
#include "storage/file_lock.h"

namespace millrace::app {

class SweepStore {
 public:
  /// Takes the lock and, where the sweep is resumed, what is there already.
  /// \throws InvalidInput  results that are there, without --resume or --overwrite; another sweep that holds them.
  SweepStore(const SweepFile& sweep, const Suite& suite, const Arguments& arguments, std::vector<record::Fact> origin);

  /// Whether a cell needs no work any more: it is done, or proven infeasible.
  bool settled(std::size_t cell) const;
  /// Whether there is a line of it.
  const std::string& status(std::size_t cell) const { return statuses_[cell]; }
  /// Keeps the document of a finished cell. What it returns is the line that is on the disk by then.
  void add(std::size_t cell, nlohmann::json document);
  /// Writes HDF5 and CSV. \param state  "running", "complete", "failed".
  void publish(const std::string& state);

  const std::filesystem::path& log_file() const { return log_file_; }
  const std::filesystem::path& results_file() const { return results_file_; }
  const std::filesystem::path& csv_file() const { return csv_file_; }
  /// Rows of the finished cells, in the order of the suite.
  record::DataTable table() const;

 private:
  using Clock = std::chrono::steady_clock;

  void take(std::size_t cell, const nlohmann::json& document);
  void read_log();

  const Suite& suite_;
  std::filesystem::path log_file_, results_file_, csv_file_;
  std::optional<storage::FileLock> lock_;
  std::optional<record::CellLog> log_;
  std::optional<record::GrowingCellsFile> results_;
  std::vector<storage::Column> columns_;
  std::vector<std::string> statuses_;             ///< by cell; "": not finished
  std::vector<std::vector<record::Value>> rows_;  ///< by cell
  int unpublished_ = 0;
  Clock::time_point published_ = Clock::now();
};

/// Whether cells of this status need no work any more.
bool is_settled(const std::string& status);

/// Statuses by identity that a sweep which goes on with --resume finds in its log.
std::map<std::string, std::string> logged_statuses(const std::string& sweep, const Arguments& arguments);

/// Folder of the files of a sweep: --output, or `results`.
std::filesystem::path sweep_folder(const Arguments& arguments);

}  // namespace millrace::app
