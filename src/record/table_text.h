// Tables of results as CSV, Markdown and LaTeX.
#pragma once

#include <string>
#include <vector>

#include "record/data_table.h"

namespace millrace::record {

/// RFC 4180 with a header line; line breaks inside fields become blanks; numbers read back as they were.
std::string csv_text(const DataTable& table);

/// A table whose cells are texts already.
struct TextTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};

/// A pipe table; what Markdown would take for marks is escaped.
std::string markdown_text(const TextTable& table);

/// A tabular of booktabs rules; what LaTeX would take for commands is escaped.
std::string latex_text(const TextTable& table);

/// For reading: numbers with four digits, sizes and times with their units in words, nothing for what is missing.
TextTable readable(const DataTable& table);

/// One value for reading, by the unit of its column.
std::string readable(const Value& value, const storage::Column& column);

}  // namespace millrace::record
