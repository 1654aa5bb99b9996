// What groups and datasets have in common: a place for error messages and attributes.
#include "storage/object.h"

#include <fmt/format.h>

#include "base/errors.h"
#include "storage/hdf5_call.h"
#include "storage/text_value.h"

namespace millrace::storage {
namespace {

struct Attribute {
  std::int64_t object;
  const std::string& where;
  const std::string& name;

  std::string place() const { return fmt::format("{}: attribute '{}'", where, name); }
};

/// Writes in place where type and shape stay as they are (a row count must never be missing, even for a moment).
void write(const Attribute& at, hid_t file_type, hid_t memory_type, hid_t space, const void* data) {
  const std::string where = at.place();
  const bool exists = check(H5Aexists(at.object, at.name.c_str()), where, "H5Aexists") > 0;
  if (exists) {
    const Handle old = own(H5Aopen(at.object, at.name.c_str(), H5P_DEFAULT), where, "H5Aopen");
    const Handle old_type = own(H5Aget_type(old.id()), where, "H5Aget_type");
    const Handle old_space = own(H5Aget_space(old.id()), where, "H5Aget_space");
    if (H5Tequal(old_type.id(), file_type) > 0 && H5Sextent_equal(old_space.id(), space) > 0) {
      check(H5Awrite(old.id(), memory_type, data), where, "H5Awrite");
      return;
    }
  }
  if (exists) check(H5Adelete(at.object, at.name.c_str()), where, "H5Adelete");
  const Handle made =
      own(H5Acreate2(at.object, at.name.c_str(), file_type, space, H5P_DEFAULT, H5P_DEFAULT), where, "H5Acreate2");
  check(H5Awrite(made.id(), memory_type, data), where, "H5Awrite");
}

void write_scalar(const Attribute& at, hid_t file_type, hid_t memory_type, const void* data) {
  const Handle space = own(H5Screate(H5S_SCALAR), at.where, "H5Screate");
  write(at, file_type, memory_type, space.id(), data);
}

void write_list(const Attribute& at, hid_t file_type, hid_t memory_type, std::size_t count, const void* data) {
  const hsize_t size = count;
  const Handle space = own(H5Screate_simple(1, &size, nullptr), at.where, "H5Screate_simple");
  // HDF5 takes no null pointer, not even for no values.
  static const std::int64_t nothing = 0;
  write(at, file_type, memory_type, space.id(), count == 0 ? &nothing : data);
}

/// Opens an attribute whose values must be of one of the `classes`.
Handle open(const Attribute& at, std::initializer_list<H5T_class_t> classes, std::string_view expected) {
  if (check(H5Aexists(at.object, at.name.c_str()), at.where, "H5Aexists") == 0) {
    throw InvalidInput(fmt::format("{}: attribute '{}' is missing", at.where, at.name));
  }
  Handle handle = own(H5Aopen(at.object, at.name.c_str(), H5P_DEFAULT), at.place(), "H5Aopen");
  const Handle type = own(H5Aget_type(handle.id()), at.place(), "H5Aget_type");
  const H5T_class_t found = H5Tget_class(type.id());
  for (const H5T_class_t allowed : classes) {
    if (found == allowed) return handle;
  }
  throw InvalidInput(fmt::format("{} must be {}", at.place(), expected));
}

std::size_t count_of(const Handle& attribute, const std::string& where) {
  const Handle space = own(H5Aget_space(attribute.id()), where, "H5Aget_space");
  return static_cast<std::size_t>(check(H5Sget_simple_extent_npoints(space.id()), where, "npoints"));
}

void require_single(const Handle& attribute, const Attribute& at) {
  if (count_of(attribute, at.place()) != 1) throw InvalidInput(fmt::format("{} must be one value", at.place()));
}

}  // namespace

void Object::set(const std::string& name, std::int64_t value) {
  const LibraryLock lock;
  write_scalar({handle_.id(), where_, name}, H5T_STD_I64LE, H5T_NATIVE_INT64, &value);
}

void Object::set(const std::string& name, std::uint64_t value) {
  const LibraryLock lock;
  write_scalar({handle_.id(), where_, name}, H5T_STD_U64LE, H5T_NATIVE_UINT64, &value);
}

void Object::set(const std::string& name, double value) {
  const LibraryLock lock;
  write_scalar({handle_.id(), where_, name}, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &value);
}

void Object::set(const std::string& name, std::string_view utf8) {
  const LibraryLock lock;
  const Handle type = variable_text_type(where_);
  const std::string terminated(utf8);
  const char* data = terminated.c_str();
  write_scalar({handle_.id(), where_, name}, type.id(), type.id(), &data);
}

void Object::set(const std::string& name, const std::vector<std::string>& utf8) {
  const LibraryLock lock;
  const Handle type = variable_text_type(where_);
  std::vector<const char*> data;
  for (const std::string& text : utf8) data.push_back(text.c_str());
  write_list({handle_.id(), where_, name}, type.id(), type.id(), data.size(), data.data());
}

void Object::set(const std::string& name, const std::vector<double>& values) {
  const LibraryLock lock;
  write_list({handle_.id(), where_, name}, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, values.size(), values.data());
}

bool Object::has(const std::string& name) const {
  const LibraryLock lock;
  return check(H5Aexists(handle_.id(), name.c_str()), where_, "H5Aexists") > 0;
}

std::int64_t Object::integer(const std::string& name) const {
  const LibraryLock lock;
  const Attribute at{handle_.id(), where_, name};
  const Handle attribute = open(at, {H5T_INTEGER}, "an integer");
  require_single(attribute, at);
  std::int64_t value = 0;
  check(H5Aread(attribute.id(), H5T_NATIVE_INT64, &value), at.place(), "H5Aread");
  return value;
}

double Object::real(const std::string& name) const {
  const std::vector<double> values = reals(name);
  if (values.size() != 1) throw InvalidInput(fmt::format("{}: attribute '{}' must be one value", where_, name));
  return values.front();
}

std::string Object::text(const std::string& name) const {
  const std::vector<std::string> values = texts(name);
  if (values.size() != 1) throw InvalidInput(fmt::format("{}: attribute '{}' must be one value", where_, name));
  return values.front();
}

std::vector<std::string> Object::texts(const std::string& name) const {
  const LibraryLock lock;
  const Attribute at{handle_.id(), where_, name};
  const Handle attribute = open(at, {H5T_STRING}, "text");
  return read_texts(attribute.id(), true, at.place());
}

std::vector<double> Object::reals(const std::string& name) const {
  const LibraryLock lock;
  const Attribute at{handle_.id(), where_, name};
  const Handle attribute = open(at, {H5T_FLOAT, H5T_INTEGER}, "numbers");
  std::vector<double> values(count_of(attribute, at.place()));
  if (!values.empty()) check(H5Aread(attribute.id(), H5T_NATIVE_DOUBLE, values.data()), at.place(), "H5Aread");
  return values;
}

}  // namespace millrace::storage
