// Results of runs and sweeps in one form, for reports, comparisons and pages.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "record/data_table.h"
#include "record/results_file.h"
#include "storage/file.h"

namespace millrace::record {

/// One results file. A run is a table of one row, whose cell is the file's stem.
struct Results {
  std::filesystem::path file;
  bool sweep = false;
  std::vector<Fact> context;      ///< attributes of `/`
  std::vector<std::string> axes;  ///< columns that a sweep varied
  DataTable cells;                ///< cell, status, reason, axes, figures; see read_cells_file()
  std::string published;          ///< of a sweep: the sheet of published figures, CSV
  DataTable iterations;           ///< of a run; empty for a sweep
  DataTable ranks;                ///< likewise
  DataTable instructions;         ///< of a run with --trace: when each of one iteration ran
  std::string plan;               ///< of the run, or of the cell with the most throughput, as a plan file; "" if none
};

/// What all readers say of a file whose writer is gone without a word.
inline constexpr const char* kKilled = "killed";

/// The file's status; kKilled where it says `running` and no process holds it, as far as this host can tell.
std::string status_of(const std::filesystem::path& file);

/// With the status that status_of() gives. \throws InvalidInput  a file that holds results of neither.
Results read_results(const std::filesystem::path& file);

/// All rows under the union of the columns, in order of first appearance; of several files each row says its `file` in
/// the last column.
DataTable merged(const std::vector<Results>& all);

/// The axes of all, in order of first appearance.
std::vector<std::string> axes_of(const std::vector<Results>& all);

/// What a reader looks at first of merged(): identity, axes, status and the figures by which plans are compared.
DataTable essential(const std::vector<Results>& all);

}  // namespace millrace::record
