// The results file of a sweep (INTERFACES 9): table `/cells` and a group for each cell.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "record/data_table.h"
#include "record/results_file.h"
#include "storage/file.h"

namespace millrace::record {

/// `/cells_detail/ID`: texts that do not fit into a row.
struct CellDetail {
  std::string id;
  std::string config;  ///< effective experiment, YAML
  std::string plan;    ///< plan file; "" where there is none
  std::string stages;  ///< JSON; likewise
  std::string ranks;   ///< JSON: how each rank spends an iteration; likewise
};

struct CellsFile {
  std::vector<Fact> root;         ///< attributes of `/`
  std::vector<std::string> axes;  ///< attribute `axes`: columns that the sweep varied
  DataTable cells;
  std::string published;  ///< the sheet of published figures, CSV; "" if none
};

/// The file of a sweep that goes on. It grows in memory, a detail at a time, so that writing it after each few cells of
/// many costs little more than its bytes.
class GrowingCellsFile {
 public:
  /// \param content  everything but the rows.
  GrowingCellsFile(std::filesystem::path file, const CellsFile& content);

  /// Adds the detail of a cell, in place of one that the cell has.
  void put(const CellDetail& detail);
  /// Writes the file aside and renames it: at any moment there is the former one or this one.
  void write(const DataTable& cells, const std::string& status);

 private:
  std::filesystem::path path_;
  storage::File made_;
  storage::Group details_;
};

/// Whether an HDF5 file is that of a sweep.
bool is_cells_file(const storage::File& file);

/// What reports need: everything but the details, in which figures of cells without a plan are missing.
CellsFile read_cells_file(const std::filesystem::path& file);

}  // namespace millrace::record
