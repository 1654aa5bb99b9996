// Tables between memory and file.
#include "record/data_table.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/text.h"

namespace millrace::record {
namespace {

using storage::Column;
using storage::ColumnType;

bool is_unsigned(ColumnType type) { return type == ColumnType::uint64 || type == ColumnType::uint8; }

storage::Cell cell_of(const Value& value, ColumnType type) {
  if (type == ColumnType::text) return to_text(value);
  if (type == ColumnType::float64) return number_of(value).value_or(std::numeric_limits<double>::quiet_NaN());
  const auto* integer = std::get_if<std::int64_t>(&value);
  const std::int64_t number = integer != nullptr ? *integer : 0;
  if (is_unsigned(type)) return static_cast<std::uint64_t>(number);
  return number;
}

// A fixed length that every row's text fits in.
void set_width(const DataTable& table, std::size_t column, Column& described) {
  described.width = 1;
  for (const auto& row : table.rows) described.width = std::max(described.width, to_text(row[column]).size());
}

void read_column(const storage::Table& stored, std::size_t index, DataTable& table) {
  const Column& column = table.columns[index];
  const auto put = [&](const auto& values, const auto& value_of) {
    for (std::size_t row = 0; row < values.size(); ++row) table.rows[row][index] = value_of(values[row]);
  };
  if (column.type == ColumnType::text) {
    put(stored.column_texts(column.name), [](const std::string& text) { return text.empty() ? Value() : Value(text); });
  } else if (column.type == ColumnType::float64) {
    put(stored.column_reals(column.name), [](double real) { return std::isnan(real) ? Value() : Value(real); });
  } else {
    put(stored.column_integers(column.name), [](std::int64_t integer) { return Value(integer); });
  }
}

}  // namespace

std::optional<std::size_t> DataTable::find(std::string_view column) const {
  const auto found = std::find_if(columns.begin(), columns.end(), [&](const Column& c) { return c.name == column; });
  if (found == columns.end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns.begin());
}

std::size_t DataTable::at(std::string_view column) const {
  if (const auto found = find(column)) return *found;
  std::vector<std::string> names;
  for (const Column& candidate : columns) names.push_back(candidate.name);
  throw InvalidInput(unknown_name("column", column, names));
}

DataTable with_columns(const DataTable& table, const std::vector<std::string>& columns) {
  DataTable chosen;
  std::vector<std::size_t> places;
  for (const std::string& name : columns) {
    const auto column = table.find(name);
    if (!column) continue;
    places.push_back(*column);
    chosen.columns.push_back(table.columns[*column]);
  }
  for (const auto& row : table.rows) {
    chosen.rows.emplace_back();
    for (const std::size_t place : places) chosen.rows.back().push_back(row[place]);
  }
  return chosen;
}

std::string to_text(const Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return "";
}

std::optional<double> number_of(const Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return std::nullopt;
}

void write_table(storage::Group& group, const std::string& name, const DataTable& table,
                 const std::string& description) {
  std::vector<Column> columns = table.columns;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (columns[c].type == ColumnType::text) set_width(table, c, columns[c]);
  }
  storage::Table stored = group.make_table(name, columns, std::max<std::uint64_t>(1, table.rows.size()), description);
  std::vector<storage::Cell> cells;
  for (const auto& row : table.rows) {
    cells.clear();
    for (std::size_t c = 0; c < columns.size(); ++c) cells.push_back(cell_of(row[c], columns[c].type));
    stored.append(cells);
  }
  stored.flush();
}

DataTable read_table(const storage::Group& group, const std::string& name) {
  const storage::Table stored = group.table(name);
  DataTable table;
  table.columns = stored.columns();
  const std::vector<std::string> units = stored.texts("unit");
  for (std::size_t c = 0; c < table.columns.size() && c < units.size(); ++c) table.columns[c].unit = units[c];
  table.rows.assign(stored.rows(), std::vector<Value>(table.columns.size()));
  for (std::size_t c = 0; c < table.columns.size(); ++c) read_column(stored, c, table);
  return table;
}

}  // namespace millrace::record
