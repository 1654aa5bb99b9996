// N-dimensional arrays of numbers in a file: read and written by whole rows, lists of rows or blocks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "storage/number_type.h"
#include "storage/object.h"

namespace millrace::storage {

/// A numeric dataset. A row is everything under one index of axis 0. Numbers convert between the stored and the
/// asked type; spans must have exactly the size of what is asked (std::logic_error else), indices must be inside
/// the shape (InvalidInput).
class Dataset : public Object {
 public:
  Dataset(Handle handle, std::string where);

  const std::vector<std::int64_t>& shape() const { return shape_; }
  NumberType type() const { return type_; }
  std::int64_t rows() const { return shape_.empty() ? 1 : shape_.front(); }
  std::int64_t row_size() const;  ///< numbers in one row

  template <class T>
  void read(std::span<T> into) const {
    transfer_block(zeros(), shape_, number_type<T>(), into.size(), into.data());
  }
  template <class T>
  void read_rows(std::int64_t first, std::int64_t count, std::span<T> into) const {
    read_block(rows_offset(first), rows_counts(count), into);
  }
  /// Rows in the order of `rows`; an index may appear more than once.
  template <class T>
  void read_row_list(std::span<const std::int64_t> rows, std::span<T> into) const {
    transfer_row_list(rows, number_type<T>(), into.size(), into.data());
  }
  /// Hyperslab of `counts` numbers from `offset`, one entry an axis.
  template <class T>
  void read_block(std::span<const std::int64_t> offset, std::span<const std::int64_t> counts, std::span<T> into) const {
    transfer_block(offset, counts, number_type<T>(), into.size(), into.data());
  }

  template <class T>
  void write(std::span<const T> from) {
    write_block(zeros(), shape_, from);
  }
  template <class T>
  void write_rows(std::int64_t first, std::int64_t count, std::span<const T> from) {
    write_block(rows_offset(first), rows_counts(count), from);
  }
  template <class T>
  void write_block(std::span<const std::int64_t> offset, std::span<const std::int64_t> counts,
                   std::span<const T> from) {
    store_block(offset, counts, number_type<T>(), from.size(), from.data());
  }

 private:
  std::vector<std::int64_t> zeros() const { return std::vector<std::int64_t>(shape_.size(), 0); }
  std::vector<std::int64_t> rows_offset(std::int64_t first) const;
  std::vector<std::int64_t> rows_counts(std::int64_t count) const;
  void transfer_block(std::span<const std::int64_t> offset, std::span<const std::int64_t> counts, NumberType type,
                      std::size_t size, void* into) const;
  void transfer_row_list(std::span<const std::int64_t> rows, NumberType type, std::size_t size, void* into) const;
  void store_block(std::span<const std::int64_t> offset, std::span<const std::int64_t> counts, NumberType type,
                   std::size_t size, const void* from);

  std::vector<std::int64_t> shape_;
  NumberType type_;
};

}  // namespace millrace::storage
