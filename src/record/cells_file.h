// The results file of a sweep (INTERFACES 9): table `/cells` and a group for each cell.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "record/data_table.h"
#include "record/results_file.h"

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
  std::vector<CellDetail> details;
  std::string published;  ///< the sheet of published figures, CSV; "" if none
};

/// Writes the whole file aside and renames it: at any moment there is the former one or this one.
void write_cells_file(const std::filesystem::path& file, const CellsFile& content);

/// Whether an HDF5 file is that of a sweep.
bool is_cells_file(const storage::File& file);

/// What reports need: everything but the details, in which figures of cells without a plan are missing.
CellsFile read_cells_file(const std::filesystem::path& file);

}  // namespace millrace::record
