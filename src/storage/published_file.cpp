// HDF5 files that are complete from the first moment they can be seen, and tables that outgrow theirs.
#include "storage/published_file.h"

#include <algorithm>

#include <vector>

#include "storage/hdf5_call.h"
#include "storage/table_layout.h"

namespace millrace::storage {
namespace {

/// The table's columns with the units and descriptions that its attributes keep.
std::vector<Column> described_columns(const Table& table) {
  std::vector<Column> columns = table.columns();
  const std::vector<std::string> units = table.texts("unit");
  const std::vector<std::string> descriptions = table.texts("column_descriptions");
  for (std::size_t i = 0; i < columns.size(); ++i) {
    columns[i].unit = units.at(i);
    columns[i].description = descriptions.at(i);
  }
  return columns;
}

void copy_rows(const Table& from, Table& to, std::uint64_t rows) {
  if (rows == 0) return;
  const TableLayout layout = layout_of(from.columns());
  const Handle type = row_type(layout, from.where());
  const hsize_t first = 0, count = rows;
  std::vector<std::byte> bytes(rows * layout.row_bytes);
  for (const Table* table : {&from, static_cast<const Table*>(&to)}) {
    const Handle memory = own(H5Screate_simple(1, &count, nullptr), table->where(), "H5Screate_simple");
    const Handle file = own(H5Dget_space(table->id()), table->where(), "H5Dget_space");
    check(H5Sselect_hyperslab(file.id(), H5S_SELECT_SET, &first, nullptr, &count, nullptr), table->where(),
          "H5Sselect_hyperslab");
    if (table == &from) {
      check(H5Dread(from.id(), type.id(), memory.id(), file.id(), H5P_DEFAULT, bytes.data()), from.where(), "H5Dread");
    } else {
      check(H5Dwrite(to.id(), type.id(), memory.id(), file.id(), H5P_DEFAULT, bytes.data()), to.where(), "H5Dwrite");
    }
  }
  to.set(kRowsAttribute, rows);
}

}  // namespace

File make_published(const FileLock& lock, Existing existing, const std::function<void(File&)>& build) {
  write_aside(lock.file(), existing, [&](const std::filesystem::path& aside) {
    File file = File::make(aside);
    build(file);
    file.close();
  });
  return File::modify(lock);
}

void edit_published(const FileLock& lock, const std::function<void(File&)>& edit) {
  write_aside(lock.file(), Existing::replace, [&](const std::filesystem::path& aside) {
    std::filesystem::copy_file(lock.file(), aside);
    const FileLock lock_of_copy(aside);
    File file = File::modify(lock_of_copy);
    edit(file);
    file.close();
  });
}

void resize_table(File& file, const std::string& name, std::uint64_t capacity) {
  capacity = std::max(capacity, file.table(name).rows());
  if (file.table(name).capacity() == capacity) return;
  const LibraryLock library;
  const std::string resized = name + ".resized";
  {
    const Table old = file.table(name);
    Table other = file.make_table(resized, described_columns(old), capacity, old.text("description"));
    copy_rows(old, other, old.rows());
  }
  file.remove(name);
  check(H5Lmove(file.id(), resized.c_str(), file.id(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT), file.where(),
        "H5Lmove");
}

}  // namespace millrace::storage
