// Tables: rows of named columns that survive the end of their writer (INTERFACES 6, 9).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "storage/column.h"
#include "storage/object.h"

namespace millrace::storage {

/// A one-dimensional compound dataset of a fixed number of rows, contiguous and allocated when made, with the number
/// of valid rows in its attribute `rows`. Appended rows wait in memory; flush() puts them into the file and only then
/// raises `rows`, so that a kill at any moment leaves the rows of the last flush (REPORTS L01, L04).
/// A row that finds no room throws std::length_error: see resize_table() for tables of unknown length.
class Table : public Object {
 public:
  Table(Handle handle, std::string where);

  const std::vector<Column>& columns() const { return columns_; }  ///< name, type and width; units are attributes
  std::uint64_t capacity() const { return capacity_; }
  std::uint64_t rows() const { return rows_; }  ///< valid rows, those not yet flushed included

  void append(std::span<const Cell> cells);
  void append(std::initializer_list<Cell> cells) { append(std::span(cells.begin(), cells.size())); }
  void flush();
  /// Drops all rows from `rows` on (a resumed run continues after its checkpoint).
  void keep_rows(std::uint64_t rows);

  /// Columns of the flushed rows. \throws InvalidInput for an unknown column or one of another type.
  std::vector<std::int64_t> column_integers(const std::string& name) const;
  std::vector<double> column_reals(const std::string& name) const;
  std::vector<std::string> column_texts(const std::string& name) const;

 private:
  const Column& column(const std::string& name) const;
  void read_field(const std::string& name, std::int64_t type, void* into) const;
  void store_count();

  std::vector<Column> columns_;
  std::vector<std::byte> pending_;
  std::uint64_t capacity_ = 0;
  std::uint64_t rows_ = 0;
  std::uint64_t flushed_ = 0;
};

}  // namespace millrace::storage
