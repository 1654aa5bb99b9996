// Variable-length UTF-8 strings of attributes and scalar datasets. Private to the room.
#include "storage/text_value.h"

#include "storage/hdf5_call.h"

namespace millrace::storage {
namespace {

Handle text_type(std::size_t size, const std::string& where) {
  Handle type = own(H5Tcopy(H5T_C_S1), where, "H5Tcopy");
  check(H5Tset_size(type.id(), size), where, "H5Tset_size");
  check(H5Tset_cset(type.id(), H5T_CSET_UTF8), where, "H5Tset_cset");
  return type;
}

void read(std::int64_t id, bool is_attribute, std::int64_t type, void* into, const std::string& where) {
  if (is_attribute) {
    check(H5Aread(id, type, into), where, "H5Aread");
  } else {
    check(H5Dread(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, into), where, "H5Dread");
  }
}

}  // namespace

Handle variable_text_type(const std::string& where) { return text_type(H5T_VARIABLE, where); }

std::vector<std::string> read_texts(std::int64_t id, bool is_attribute, const std::string& where) {
  const Handle stored = own(is_attribute ? H5Aget_type(id) : H5Dget_type(id), where, "H5Xget_type");
  const Handle space = own(is_attribute ? H5Aget_space(id) : H5Dget_space(id), where, "H5Xget_space");
  const auto count = static_cast<std::size_t>(check(H5Sget_simple_extent_npoints(space.id()), where, "npoints"));
  std::vector<std::string> texts(count);
  if (count == 0) return texts;
  if (check(H5Tis_variable_str(stored.id()), where, "H5Tis_variable_str") > 0) {
    std::vector<char*> values(count, nullptr);
    read(id, is_attribute, stored.id(), values.data(), where);
    for (std::size_t i = 0; i < count; ++i) texts[i] = values[i] == nullptr ? "" : values[i];
    check(H5Dvlen_reclaim(stored.id(), space.id(), H5P_DEFAULT, values.data()), where, "H5Dvlen_reclaim");
  } else {
    const std::size_t width = H5Tget_size(stored.id());
    std::vector<char> values(count * width);
    read(id, is_attribute, stored.id(), values.data(), where);
    for (std::size_t i = 0; i < count; ++i) {
      const std::string padded(&values[i * width], width);
      texts[i] = padded.substr(0, padded.find('\0'));
    }
  }
  return texts;
}

}  // namespace millrace::storage
