// How a table lies in the file: one compound dataset, contiguous, allocated when made. Private to the room.
#include "storage/table_layout.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <type_traits>

#include <fmt/format.h>

#include "base/errors.h"
#include "storage/hdf5_call.h"
#include "storage/object.h"

namespace millrace::storage {
namespace {

std::size_t bytes_of(const Column& column) {
  switch (column.type) {
    case ColumnType::uint8: return 1;
    case ColumnType::text: return column.width + 1;  // and its terminator
    default: return 8;
  }
}

Handle type_of(const Column& column, const std::string& where) {
  switch (column.type) {
    case ColumnType::int64: return own(H5Tcopy(H5T_STD_I64LE), where, "H5Tcopy");
    case ColumnType::uint64: return own(H5Tcopy(H5T_STD_U64LE), where, "H5Tcopy");
    case ColumnType::float64: return own(H5Tcopy(H5T_IEEE_F64LE), where, "H5Tcopy");
    case ColumnType::uint8: return own(H5Tcopy(H5T_STD_U8LE), where, "H5Tcopy");
    case ColumnType::text: break;
  }
  Handle type = own(H5Tcopy(H5T_C_S1), where, "H5Tcopy");
  check(H5Tset_size(type.id(), bytes_of(column)), where, "H5Tset_size");
  check(H5Tset_cset(type.id(), H5T_CSET_UTF8), where, "H5Tset_cset");
  return type;
}

Column column_of(hid_t type, const std::string& where) {
  Column column;
  const std::size_t size = H5Tget_size(type);
  const H5T_class_t kind = H5Tget_class(type);
  if (kind == H5T_STRING && H5Tis_variable_str(type) <= 0) {
    column.type = ColumnType::text;
    column.width = size - 1;
  } else if (kind == H5T_FLOAT && size == 8) {
    column.type = ColumnType::float64;
  } else if (kind == H5T_INTEGER && size == 8) {
    column.type = H5Tget_sign(type) == H5T_SGN_2 ? ColumnType::int64 : ColumnType::uint64;
  } else if (kind == H5T_INTEGER && size == 1) {
    column.type = ColumnType::uint8;
  } else {
    throw InvalidInput(where + " has a field of a type that no table of millrace has");
  }
  return column;
}

template <class T>
void put(T value, std::byte* to) {
  std::memcpy(to, &value, sizeof value);
}

void put_text(const std::string& text, const Column& column, std::byte* to) {
  std::size_t length = std::min(text.size(), column.width);
  if (length < text.size()) {
    while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xC0U) == 0x80U) --length;
  }
  std::memset(to, 0, bytes_of(column));
  std::memcpy(to, text.data(), length);
}

/// `cell` as the 64-bit number Target if it holds exactly that value.
template <class Target>
std::optional<Target> exactly(const Cell& cell) {
  if (const auto* i = std::get_if<std::int64_t>(&cell)) {
    if (std::is_unsigned_v<Target> && *i < 0) return std::nullopt;
    return static_cast<Target>(*i);
  }
  if (const auto* u = std::get_if<std::uint64_t>(&cell)) {
    if (std::is_signed_v<Target> && *u > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
    return static_cast<Target>(*u);
  }
  return std::nullopt;
}

bool put_cell(const Column& column, const Cell& cell, std::byte* to) {
  switch (column.type) {
    case ColumnType::text: {
      const auto* text = std::get_if<std::string>(&cell);
      if (text != nullptr) put_text(*text, column, to);
      return text != nullptr;
    }
    case ColumnType::float64: {
      const auto* real = std::get_if<double>(&cell);
      const auto whole = exactly<std::int64_t>(cell);
      if (real != nullptr) put(*real, to);
      else if (whole) put(static_cast<double>(*whole), to);
      return real != nullptr || whole;
    }
    case ColumnType::int64: {
      const auto value = exactly<std::int64_t>(cell);
      if (value) put(*value, to);
      return value.has_value();
    }
    case ColumnType::uint64:
    case ColumnType::uint8: {
      const auto value = exactly<std::uint64_t>(cell);
      const bool narrow = column.type == ColumnType::uint8;
      if (!value || (narrow && *value > 255)) return false;
      if (narrow) put(static_cast<std::uint8_t>(*value), to);
      else put(*value, to);
      return true;
    }
  }
  return false;
}

}  // namespace

TableLayout layout_of(std::vector<Column> columns) {
  TableLayout layout{std::move(columns), {}, 0};
  for (const Column& column : layout.columns) {
    layout.offsets.push_back(layout.row_bytes);
    layout.row_bytes += bytes_of(column);
  }
  return layout;
}

TableLayout layout_of_dataset(std::int64_t dataset, const std::string& where) {
  const Handle type = own(H5Dget_type(dataset), where, "H5Dget_type");
  if (H5Tget_class(type.id()) != H5T_COMPOUND) throw InvalidInput(where + " is not a table");
  std::vector<Column> columns;
  const int fields = check(H5Tget_nmembers(type.id()), where, "H5Tget_nmembers");
  for (unsigned field = 0; field < static_cast<unsigned>(fields); ++field) {
    const Handle member = own(H5Tget_member_type(type.id(), field), where, "H5Tget_member_type");
    columns.push_back(column_of(member.id(), where));
    char* name = H5Tget_member_name(type.id(), field);
    columns.back().name = name;
    H5free_memory(name);
  }
  return layout_of(std::move(columns));
}

Handle row_type(const TableLayout& layout, const std::string& where) {
  Handle type = own(H5Tcreate(H5T_COMPOUND, layout.row_bytes), where, "H5Tcreate");
  for (std::size_t i = 0; i < layout.columns.size(); ++i) {
    const Handle field = type_of(layout.columns[i], where);
    check(H5Tinsert(type.id(), layout.columns[i].name.c_str(), layout.offsets[i], field.id()), where, "H5Tinsert");
  }
  return type;
}

Handle make_table_dataset(std::int64_t group, const std::string& name, const std::vector<Column>& columns,
                          std::uint64_t capacity, const std::string& description, const std::string& where) {
  const Handle type = row_type(layout_of(columns), where);
  const hsize_t extent = capacity;
  const Handle space = own(H5Screate_simple(1, &extent, nullptr), where, "H5Screate_simple");
  const Handle creation = own(H5Pcreate(H5P_DATASET_CREATE), where, "H5Pcreate");
  check(H5Pset_layout(creation.id(), H5D_CONTIGUOUS), where, "H5Pset_layout");
  check(H5Pset_alloc_time(creation.id(), H5D_ALLOC_TIME_EARLY), where, "H5Pset_alloc_time");
  check(H5Pset_fill_time(creation.id(), H5D_FILL_TIME_ALLOC), where, "H5Pset_fill_time");
  Object table(own(H5Dcreate2(group, name.c_str(), type.id(), space.id(), H5P_DEFAULT, creation.id(), H5P_DEFAULT),
                   where, "H5Dcreate2"),
               where);
  std::vector<std::string> units, descriptions;
  for (const Column& column : columns) {
    units.push_back(column.unit);
    descriptions.push_back(column.description);
  }
  table.set(kRowsAttribute, std::uint64_t{0});
  table.set("unit", units);  // one a column, in their order
  table.set("description", description);
  table.set("column_descriptions", descriptions);
  return std::move(table).take();
}

void pack_row(const TableLayout& layout, std::span<const Cell> cells, std::byte* bytes, const std::string& where) {
  if (cells.size() != layout.columns.size()) {
    throw std::logic_error(fmt::format("{}: {} cells for {} columns", where, cells.size(), layout.columns.size()));
  }
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (!put_cell(layout.columns[i], cells[i], bytes + layout.offsets[i])) {
      const std::string& column = layout.columns[i].name;
      throw std::logic_error(fmt::format("{}: cell of column '{}' does not fit its type", where, column));
    }
  }
}

}  // namespace millrace::storage
