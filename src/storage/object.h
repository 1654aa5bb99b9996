// What groups and datasets have in common: a place for error messages and attributes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/handle.h"

namespace millrace::storage {

/// A group or dataset of an open file. Setting an attribute replaces one of the same name. Reading one that is
/// missing or of another type throws InvalidInput, a failing call SystemError; both name file and object.
class Object {
 public:
  Object() = default;
  Object(Handle handle, std::string where) : handle_(std::move(handle)), where_(std::move(where)) {}

  void set(const std::string& name, std::int64_t value);
  void set(const std::string& name, std::uint64_t value);
  void set(const std::string& name, int value) { set(name, std::int64_t{value}); }
  void set(const std::string& name, double value);
  void set(const std::string& name, std::string_view utf8);
  void set(const std::string& name, const char* utf8) { set(name, std::string_view(utf8)); }
  void set(const std::string& name, const std::string& utf8) { set(name, std::string_view(utf8)); }
  void set(const std::string& name, const std::vector<std::string>& utf8);
  void set(const std::string& name, const std::vector<double>& values);

  bool has(const std::string& name) const;
  std::int64_t integer(const std::string& name) const;
  double real(const std::string& name) const;
  std::string text(const std::string& name) const;
  std::vector<std::string> texts(const std::string& name) const;
  std::vector<double> reals(const std::string& name) const;

  std::int64_t id() const { return handle_.id(); }  ///< HDF5's identifier, for the files of this room
  Handle take() && { return std::move(handle_); }

  /// "FILE" or "FILE: /path", as error messages name it.
  const std::string& where() const { return where_; }

 protected:
  Handle handle_;
  std::string where_;
};

}  // namespace millrace::storage
