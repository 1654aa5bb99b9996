// Reads the keys of a map by name; every fault is noted with its place, none is thrown, no key is overlooked.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/field.h"
#include "config/node.h"
#include "config/option.h"
#include "config/problems.h"
#include "config/values.h"

namespace millrace::config {

/// One map. When it goes out of scope every key that was not asked for is a problem, with the nearest of those that
/// were; keys that start with `x-` are the user's own notes.
class Reader {
 public:
  explicit Reader(const Field& field);
  Reader(const Node& root, Problems& problems) : Reader(Field(root, "", problems)) {}
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// The value of `key`, given or absent; makes the key known.
  Field field(std::string_view key);
  bool has(std::string_view key) { return field(key).given(); }

  template <class Type>
  Native<Type> required(std::string_view key, const Type& type) {
    return field(key).as(type);
  }
  template <class Type>
  Native<Type> get(std::string_view key, const Type& type, Native<Type> standard) {
    const Field value = field(key);
    return value ? value.as(type) : std::move(standard);
  }
  template <class Type>
  std::optional<Native<Type>> optional(std::string_view key, const Type& type) {
    const Field value = field(key);
    return value ? std::optional(value.as(type)) : std::nullopt;
  }

  /// All keys of a map whose names are free (`slowdown: {3: 1.5}`), in order, `x-` notes left out.
  std::vector<std::pair<std::string, Field>> entries();

  const std::string& path() const { return field_.path(); }
  void refuse(std::string_view reason) const { field_.refuse(reason); }

 private:
  std::string path_of(std::string_view key) const;

  Field field_;
  const Node* map_ = nullptr;  // null if absent or malformed
  Problems discarded_;         // where the fields of a malformed map report to: its own problem says enough
  Problems& problems_;
  std::vector<std::string> known_;
};

/// Reads all the records' options from a map that may hold other keys too (`{name: dp, order: best}`).
/// What is not given takes its default; what has none must be given.
Values read_values(Reader& reader, const Options& options);

}  // namespace millrace::config
