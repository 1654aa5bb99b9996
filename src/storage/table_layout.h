// How a table lies in the file: one compound dataset, contiguous, allocated when made. Private to the room.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "storage/column.h"
#include "storage/handle.h"

namespace millrace::storage {

inline constexpr const char* kRowsAttribute = "rows";

/// The columns of a row with their byte offsets, packed without gaps.
struct TableLayout {
  std::vector<Column> columns;
  std::vector<std::size_t> offsets;
  std::size_t row_bytes = 0;
};

TableLayout layout_of(std::vector<Column> columns);

/// Read back from the compound type of `dataset`. \throws InvalidInput if it is no table.
TableLayout layout_of_dataset(std::int64_t dataset, const std::string& where);

/// Compound type of all columns, packed as in the file and in memory.
Handle row_type(const TableLayout& layout, const std::string& where);

/// Makes the dataset with all its attributes and `rows` = 0 and writes zeros over the whole of it: a disk that
/// cannot hold the table refuses now, not in the middle of a run (REPORTS L04).
Handle make_table_dataset(std::int64_t group, const std::string& name, const std::vector<Column>& columns,
                          std::uint64_t capacity, const std::string& description, const std::string& where);

/// Puts one row into `bytes` (row_bytes long). Text that is too long is cut between two characters.
/// \throws std::logic_error where the cells do not fit the columns.
void pack_row(const TableLayout& layout, std::span<const Cell> cells, std::byte* bytes, const std::string& where);

}  // namespace millrace::storage
