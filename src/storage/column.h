// Columns of tables and the values of their cells.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

namespace millrace::storage {

enum class ColumnType { int64, uint64, float64, uint8, text };

/// One field of a table's rows.
struct Column {
  std::string name;
  ColumnType type = ColumnType::float64;
  std::string unit;         ///< "s", "bytes", "1" for plain numbers
  std::string description;
  std::size_t width = 0;    ///< text columns: bytes of UTF-8 that fit
};

/// A number goes into any column that holds its value exactly; text only into text columns.
using Cell = std::variant<std::int64_t, std::uint64_t, double, std::string>;

}  // namespace millrace::storage
