// Groups: make and open what lies in them.
#include "storage/group.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "base/errors.h"
#include "storage/number_codes.h"
#include "storage/table_layout.h"
#include "storage/text_value.h"

namespace millrace::storage {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

/// Past the chunk cache if `bytes` is 0: a read takes only the rows asked for, and a write that finds a full disk fails
/// itself, where a cached chunk would fail when closed and stay in memory.
Handle chunk_access(std::size_t bytes, const std::string& where) {
  Handle access = own(H5Pcreate(H5P_DATASET_ACCESS), where, "H5Pcreate");
  check(H5Pset_chunk_cache(access.id(), H5D_CHUNK_CACHE_NSLOTS_DEFAULT, bytes, H5D_CHUNK_CACHE_W0_DEFAULT), where,
        "H5Pset_chunk_cache");
  return access;
}

/// Access to a dataset whose rows are read in any order: a compressed chunk is kept for its other rows.
Handle access_for_rows(std::int64_t dataset, const std::string& where) {
  constexpr std::size_t kCompressedCacheBytes = std::size_t{64} << 20;
  const Handle creation = own(H5Dget_create_plist(dataset), where, "H5Dget_create_plist");
  const bool plain = check(H5Pget_nfilters(creation.id()), where, "H5Pget_nfilters") == 0;
  return chunk_access(plain ? 0 : kCompressedCacheBytes, where);
}

herr_t collect_name(hid_t, const char* name, const H5L_info_t*, void* into) {
  static_cast<std::vector<std::string>*>(into)->emplace_back(name);
  return 0;
}

}  // namespace

Group::Group(Handle handle, std::string file, std::string path)
    : Object(std::move(handle), path == "/" ? file : fmt::format("{}: {}", file, path)),
      file_(std::move(file)),
      path_(std::move(path)) {}

std::string Group::place(const std::string& name) const { return fmt::format("{}: {}", file_, path_of(name)); }

std::string Group::path_of(const std::string& name) const {
  return fmt::format("{}{}{}", path_, path_ == "/" ? "" : "/", name);
}

bool Group::contains(const std::string& name) const {
  const LibraryLock lock;
  // H5Lexists fails, rather than saying no, where an inner group of the path is missing.
  std::filesystem::path prefix;
  for (const auto& part : std::filesystem::path(name)) {
    prefix /= part;
    if (check(H5Lexists(handle_.id(), prefix.c_str(), H5P_DEFAULT), place(name), "H5Lexists") == 0) return false;
  }
  return true;
}

std::vector<std::string> Group::names() const {
  const LibraryLock lock;
  std::vector<std::string> found;
  check(H5Literate(handle_.id(), H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, collect_name, &found), where_, "H5Literate");
  std::sort(found.begin(), found.end());
  return found;
}

void Group::remove(const std::string& name) {
  const LibraryLock lock;
  check(H5Ldelete(handle_.id(), name.c_str(), H5P_DEFAULT), place(name), "H5Ldelete");
}

Group Group::make_group(const std::string& name) {
  const LibraryLock lock;
  Handle handle =
      own(H5Gcreate2(handle_.id(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), place(name), "H5Gcreate2");
  return {std::move(handle), file_, path_of(name)};
}

Group Group::group(const std::string& name) const {
  const LibraryLock lock;
  if (!contains(name)) throw InvalidInput(place(name) + " is missing");
  Handle handle(H5Gopen2(handle_.id(), name.c_str(), H5P_DEFAULT));
  if (!handle.valid()) throw InvalidInput(place(name) + " is not a group");
  return {std::move(handle), file_, path_of(name)};
}

Dataset Group::make_dataset(const std::string& name, NumberType type, std::span<const std::int64_t> shape,
                            const Meaning& meaning) {
  const LibraryLock lock;
  const std::string where = place(name);
  std::vector<hsize_t> extent(shape.begin(), shape.end());
  const Handle space =
      own(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr), where, "H5Screate_simple");
  const Handle creation = own(H5Pcreate(H5P_DATASET_CREATE), where, "H5Pcreate");
  if (!extent.empty()) {
    std::size_t row_bytes = size_of(type);
    for (std::size_t axis = 1; axis < extent.size(); ++axis) row_bytes *= extent[axis];
    std::vector<hsize_t> chunk = extent;
    chunk.front() = std::clamp<hsize_t>(kChunkBytes / std::max<std::size_t>(1, row_bytes), 1, extent.front());
    check(H5Pset_chunk(creation.id(), static_cast<int>(chunk.size()), chunk.data()), where, "H5Pset_chunk");
    // A chunk to be filled first would go through the cache after all.
    check(H5Pset_fill_time(creation.id(), H5D_FILL_TIME_NEVER), where, "H5Pset_fill_time");
  }
  const Handle access = chunk_access(0, where);
  Dataset made(
      own(H5Dcreate2(handle_.id(), name.c_str(), file_code(type), space.id(), H5P_DEFAULT, creation.id(), access.id()),
          where, "H5Dcreate2"),
      where);
  made.set("unit", meaning.unit);
  made.set("description", meaning.description);
  return made;
}

Handle Group::open_dataset(const std::string& name, std::int64_t access) const {
  if (!contains(name)) throw InvalidInput(place(name) + " is missing");
  Handle handle(H5Dopen2(handle_.id(), name.c_str(), access));
  if (!handle.valid()) throw InvalidInput(place(name) + " is not a dataset");
  return handle;
}

Dataset Group::dataset(const std::string& name) const {
  const LibraryLock lock;
  Handle first = open_dataset(name, H5P_DEFAULT);
  const Handle access = access_for_rows(first.id(), place(name));
  first.reset();  // the chunk cache of the first open handle would count for the second
  return {open_dataset(name, access.id()), place(name)};
}

void Group::make_text(const std::string& name, std::string_view utf8, const Meaning& meaning) {
  const LibraryLock lock;
  const std::string where = place(name);
  const Handle type = variable_text_type(where);
  const Handle space = own(H5Screate(H5S_SCALAR), where, "H5Screate");
  Handle made =
      own(H5Dcreate2(handle_.id(), name.c_str(), type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), where,
          "H5Dcreate2");
  const std::string terminated(utf8);
  const char* data = terminated.c_str();
  check(H5Dwrite(made.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, &data), where, "H5Dwrite");
  Object attributes(std::move(made), where);
  attributes.set("unit", meaning.unit);
  attributes.set("description", meaning.description);
}

std::string Group::text_dataset(const std::string& name) const {
  const LibraryLock lock;
  const Handle handle = open_dataset(name, H5P_DEFAULT);
  const Handle type = own(H5Dget_type(handle.id()), place(name), "H5Dget_type");
  const auto texts =
      H5Tget_class(type.id()) == H5T_STRING ? read_texts(handle.id(), false, place(name)) : std::vector<std::string>{};
  if (texts.size() != 1) throw InvalidInput(place(name) + " must be one text");
  return texts.front();
}

Table Group::make_table(const std::string& name, const std::vector<Column>& columns, std::uint64_t capacity,
                        const std::string& description) {
  const LibraryLock lock;
  return {make_table_dataset(handle_.id(), name, columns, capacity, description, place(name)), place(name)};
}

Table Group::table(const std::string& name) const {
  const LibraryLock lock;
  return {open_dataset(name, H5P_DEFAULT), place(name)};
}

}  // namespace millrace::storage
