// A table of results in memory: columns that say what they are, rows in which a value may be missing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "storage/column.h"
#include "storage/group.h"

namespace millrace::record {

/// Missing, or a number or a text.
using Value = std::variant<std::monostate, std::int64_t, double, std::string>;

struct DataTable {
  std::vector<storage::Column> columns;  ///< widths of text columns need not be set
  std::vector<std::vector<Value>> rows;

  std::optional<std::size_t> find(std::string_view column) const;
  /// \throws InvalidInput  with the nearest name.
  std::size_t at(std::string_view column) const;
};

/// Those of the `columns` that the table has, in their order.
DataTable with_columns(const DataTable& table, const std::vector<std::string>& columns);

/// As people and CSV readers write it: the shortest text that reads back as the same number; "" if missing.
std::string to_text(const Value& value);
/// As a number; nothing for texts and what is missing.
std::optional<double> number_of(const Value& value);

/// Stores the table as a dataset. What is missing becomes nan among reals, 0 among integers and "" among texts.
void write_table(storage::Group& group, const std::string& name, const DataTable& table,
                 const std::string& description);
/// Reads it back; nan and, among texts, "" are missing.
DataTable read_table(const storage::Group& group, const std::string& name);

}  // namespace millrace::record
