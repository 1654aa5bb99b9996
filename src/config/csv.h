// Comma-separated files with a header line (RFC 4180): quoted cells may hold commas, quotes and line breaks.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/node.h"
#include "config/problems.h"

namespace millrace::config {

struct CsvCell {
  std::string text;
  Where where;
};

using CsvRow = std::vector<CsvCell>;

/// Every row has as many cells as the header.
struct CsvTable {
  Where where;  ///< of the header
  std::vector<std::string> columns;
  std::vector<CsvRow> rows;

  std::optional<std::size_t> column(std::string_view name) const;
};

/// Rows with another number of cells, a quote that does not end and a column that is given twice are noted; such rows
/// are left out. A byte-order mark of UTF-8 is skipped.
/// \throws InvalidInput  a file that cannot be read or holds nothing.
CsvTable load_csv(const std::filesystem::path& file, Problems& problems);

/// The same from text; `name` is what errors cite.
CsvTable parse_csv(std::string_view text, const std::string& name, Problems& problems);

}  // namespace millrace::config
