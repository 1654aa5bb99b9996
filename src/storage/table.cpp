// Tables: rows of named columns that survive the end of their writer (INTERFACES 6, 9).
#include "storage/table.h"

#include <stdexcept>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/text.h"
#include "storage/hdf5_call.h"
#include "storage/table_layout.h"

namespace millrace::storage {
namespace {

struct RowSpaces {
  Handle file;
  Handle memory;
};

RowSpaces spaces(std::int64_t dataset, hsize_t first, hsize_t count, const std::string& where) {
  RowSpaces rows{own(H5Dget_space(dataset), where, "H5Dget_space"),
                 own(H5Screate_simple(1, &count, nullptr), where, "H5Screate_simple")};
  check(H5Sselect_hyperslab(rows.file.id(), H5S_SELECT_SET, &first, nullptr, &count, nullptr), where,
        "H5Sselect_hyperslab");
  return rows;
}

}  // namespace

Table::Table(Handle handle, std::string where) : Object(std::move(handle), std::move(where)) {
  const LibraryLock lock;
  columns_ = layout_of_dataset(handle_.id(), where_).columns;
  const Handle space = own(H5Dget_space(handle_.id()), where_, "H5Dget_space");
  capacity_ = static_cast<std::uint64_t>(check(H5Sget_simple_extent_npoints(space.id()), where_, "npoints"));
  const std::int64_t rows = integer(kRowsAttribute);
  if (rows < 0 || static_cast<std::uint64_t>(rows) > capacity_) {
    throw InvalidInput(fmt::format("{}: attribute 'rows' is {}, the table has room for {}", where_, rows, capacity_));
  }
  rows_ = flushed_ = static_cast<std::uint64_t>(rows);
}

void Table::append(std::span<const Cell> cells) {
  if (rows_ == capacity_) throw std::length_error(fmt::format("{}: all {} rows are used", where_, capacity_));
  const TableLayout layout = layout_of(columns_);
  const std::size_t old = pending_.size();
  pending_.resize(old + layout.row_bytes);
  try {
    pack_row(layout, cells, pending_.data() + old, where_);
  } catch (...) {
    pending_.resize(old);
    throw;
  }
  ++rows_;
}

void Table::flush() {
  if (rows_ == flushed_) return;
  const LibraryLock lock;
  const Handle type = row_type(layout_of(columns_), where_);
  const RowSpaces at = spaces(handle_.id(), flushed_, rows_ - flushed_, where_);
  check(H5Dwrite(handle_.id(), type.id(), at.memory.id(), at.file.id(), H5P_DEFAULT, pending_.data()), where_,
        "H5Dwrite");
  check(H5Fflush(handle_.id(), H5F_SCOPE_GLOBAL), where_, "H5Fflush");
  store_count();
  pending_.clear();
}

void Table::keep_rows(std::uint64_t rows) {
  if (rows > flushed_) {
    throw InvalidInput(fmt::format("{}: cannot keep {} rows, the table has {}", where_, rows, flushed_));
  }
  pending_.clear();
  rows_ = rows;
  const LibraryLock lock;
  store_count();
}

void Table::store_count() {
  set(kRowsAttribute, rows_);
  check(H5Fflush(handle_.id(), H5F_SCOPE_GLOBAL), where_, "H5Fflush");
  flushed_ = rows_;
}

const Column& Table::column(const std::string& name) const {
  std::vector<std::string> names;
  for (const Column& candidate : columns_) {
    if (candidate.name == name) return candidate;
    names.push_back(candidate.name);
  }
  throw InvalidInput(fmt::format("{}: {}", where_, unknown_name("column", name, names)));
}

void Table::read_field(const std::string& name, std::int64_t type, void* into) const {
  // A compound of the one field: the library picks it out of the rows and converts its numbers.
  const Handle one = own(H5Tcreate(H5T_COMPOUND, H5Tget_size(type)), where_, "H5Tcreate");
  check(H5Tinsert(one.id(), name.c_str(), 0, type), where_, "H5Tinsert");
  const RowSpaces at = spaces(handle_.id(), 0, flushed_, where_);
  check(H5Dread(handle_.id(), one.id(), at.memory.id(), at.file.id(), H5P_DEFAULT, into), where_, "H5Dread");
}

std::vector<std::int64_t> Table::column_integers(const std::string& name) const {
  const ColumnType type = column(name).type;
  if (type == ColumnType::text || type == ColumnType::float64) {
    throw InvalidInput(fmt::format("{}: column '{}' does not hold integers", where_, name));
  }
  const LibraryLock lock;
  std::vector<std::int64_t> values(flushed_);
  if (flushed_ > 0) read_field(name, H5T_NATIVE_INT64, values.data());
  return values;
}

std::vector<double> Table::column_reals(const std::string& name) const {
  if (column(name).type == ColumnType::text) {
    throw InvalidInput(fmt::format("{}: column '{}' does not hold numbers", where_, name));
  }
  const LibraryLock lock;
  std::vector<double> values(flushed_);
  if (flushed_ > 0) read_field(name, H5T_NATIVE_DOUBLE, values.data());
  return values;
}

std::vector<std::string> Table::column_texts(const std::string& name) const {
  const Column& field = column(name);
  if (field.type != ColumnType::text) {
    throw InvalidInput(fmt::format("{}: column '{}' does not hold text", where_, name));
  }
  const LibraryLock lock;
  std::vector<std::string> values(flushed_);
  if (flushed_ == 0) return values;
  const TableLayout only = layout_of({field});
  const Handle type = row_type(only, where_);
  const Handle text = own(H5Tget_member_type(type.id(), 0), where_, "H5Tget_member_type");
  std::vector<char> bytes(flushed_ * only.row_bytes);
  read_field(name, text.id(), bytes.data());
  for (std::size_t row = 0; row < values.size(); ++row) values[row] = &bytes[row * only.row_bytes];
  return values;
}

}  // namespace millrace::storage
