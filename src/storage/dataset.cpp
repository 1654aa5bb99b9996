// N-dimensional arrays of numbers in a file: read and written by whole rows, lists of rows or blocks.
#include "storage/dataset.h"

#include <functional>
#include <numeric>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/errors.h"
#include "storage/number_codes.h"

namespace millrace::storage {
namespace {

std::vector<hsize_t> sizes(std::span<const std::int64_t> values) { return {values.begin(), values.end()}; }

std::int64_t product(std::span<const std::int64_t> values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{1}, std::multiplies<>());
}

/// Spaces in the file and in memory for one hyperslab.
struct Selection {
  Handle file;
  Handle memory;
};

Selection select(std::int64_t dataset, std::span<const std::int64_t> shape, std::span<const std::int64_t> offset,
                 std::span<const std::int64_t> counts, std::size_t size, const std::string& where) {
  if (offset.size() != shape.size() || counts.size() != shape.size()) {
    throw std::logic_error(where + ": a block needs one offset and one count an axis");
  }
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (offset[axis] < 0 || counts[axis] < 0 || counts[axis] > shape[axis] - offset[axis]) {
      throw InvalidInput(fmt::format("{}: block of {} from {} is outside the shape {}", where, counts, offset, shape));
    }
  }
  if (size != static_cast<std::size_t>(product(counts))) {
    throw std::logic_error(fmt::format("{}: room for {} numbers, block of {}", where, size, product(counts)));
  }
  Selection selection{own(H5Dget_space(dataset), where, "H5Dget_space"), Handle()};
  // Memory has the block's own shape: HDF5 then copies row by row, for any other shape number by number.
  selection.memory = own(H5Screate_simple(static_cast<int>(counts.size()), sizes(counts).data(), nullptr), where,
                         "H5Screate_simple");
  if (!shape.empty()) {
    check(H5Sselect_hyperslab(selection.file.id(), H5S_SELECT_SET, sizes(offset).data(), nullptr, sizes(counts).data(),
                              nullptr),
          where, "H5Sselect_hyperslab");
  }
  return selection;
}

}  // namespace

Dataset::Dataset(Handle handle, std::string where) : Object(std::move(handle), std::move(where)) {
  const LibraryLock lock;
  const Handle type = own(H5Dget_type(handle_.id()), where_, "H5Dget_type");
  const auto number = number_type_of(type.id());
  if (!number) {
    throw InvalidInput(where_ + ": must hold numbers of type uint8, int32, int64, uint64, float32 or float64");
  }
  type_ = *number;
  const Handle space = own(H5Dget_space(handle_.id()), where_, "H5Dget_space");
  const int rank = check(H5Sget_simple_extent_ndims(space.id()), where_, "H5Sget_simple_extent_ndims");
  std::vector<hsize_t> extent(static_cast<std::size_t>(rank));
  check(H5Sget_simple_extent_dims(space.id(), extent.data(), nullptr), where_, "H5Sget_simple_extent_dims");
  shape_.assign(extent.begin(), extent.end());
}

std::int64_t Dataset::row_size() const {
  return shape_.empty() ? 1 : product(std::span(shape_).subspan(1));
}

std::vector<std::int64_t> Dataset::rows_offset(std::int64_t first) const {
  std::vector<std::int64_t> offset = zeros();
  if (!offset.empty()) offset.front() = first;
  return offset;
}

std::vector<std::int64_t> Dataset::rows_counts(std::int64_t count) const {
  std::vector<std::int64_t> counts = shape_;
  if (!counts.empty()) counts.front() = count;
  return counts;
}

void Dataset::transfer_block(std::span<const std::int64_t> offset, std::span<const std::int64_t> counts,
                             NumberType type, std::size_t size, void* into) const {
  const LibraryLock lock;
  const Selection at = select(handle_.id(), shape_, offset, counts, size, where_);
  if (size == 0) return;
  check(H5Dread(handle_.id(), memory_code(type), at.memory.id(), at.file.id(), H5P_DEFAULT, into), where_, "H5Dread");
}

void Dataset::transfer_row_list(std::span<const std::int64_t> rows, NumberType type, std::size_t size,
                                void* into) const {
  const std::int64_t row = row_size();
  if (size != rows.size() * static_cast<std::size_t>(row)) {
    throw std::logic_error(fmt::format("{}: room for {} numbers, {} rows of {}", where_, size, rows.size(), row));
  }
  const LibraryLock lock;
  auto* bytes = static_cast<std::byte*>(into);
  // One read a run of neighbours: selections joined from single rows cost HDF5 more than separate reads.
  for (std::size_t begin = 0; begin < rows.size();) {
    std::size_t end = begin + 1;
    while (end < rows.size() && rows[end] == rows[end - 1] + 1) ++end;
    const std::size_t numbers = (end - begin) * static_cast<std::size_t>(row);
    transfer_block(rows_offset(rows[begin]), rows_counts(static_cast<std::int64_t>(end - begin)), type, numbers, bytes);
    bytes += numbers * size_of(type);
    begin = end;
  }
}

void Dataset::store_block(std::span<const std::int64_t> offset, std::span<const std::int64_t> counts, NumberType type,
                          std::size_t size, const void* from) {
  const LibraryLock lock;
  const Selection at = select(handle_.id(), shape_, offset, counts, size, where_);
  if (size == 0) return;
  check(H5Dwrite(handle_.id(), memory_code(type), at.memory.id(), at.file.id(), H5P_DEFAULT, from), where_, "H5Dwrite");
}

}  // namespace millrace::storage
