// One value of a configuration: the node at a key path, or its absence, and the reading of it as a type.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "config/node.h"
#include "config/option.h"
#include "config/problems.h"
#include "config/values.h"

namespace millrace::config {

class Reader;

/// What an option type becomes: Integer an std::int64_t, OneOf a std::string, Duration Seconds, …
template <class Type>
struct NativeOf;
template <>
struct NativeOf<Boolean> {
  using type = bool;
};
template <>
struct NativeOf<Text> {
  using type = std::string;
};
template <>
struct NativeOf<Integer> {
  using type = std::int64_t;
};
template <>
struct NativeOf<Real> {
  using type = double;
};
template <>
struct NativeOf<OneOf> {
  using type = std::string;
};
template <>
struct NativeOf<IntegerList> {
  using type = std::vector<std::int64_t>;
};
template <>
struct NativeOf<Duration> {
  using type = Seconds;
};
template <>
struct NativeOf<Size> {
  using type = Bytes;
};
template <class Type>
using Native = typename NativeOf<Type>::type;

/// A place for a value: the node of a key or of a list's element, or its absence. Lives no longer than the document,
/// the problems and the Reader that it came from. After a problem a getter returns a value without meaning, of use
/// only to read on: call Problems::throw_if_any before anything is done with what was read.
class Field {
 public:
  Field(const Node& node, std::string path, Problems& problems);     ///< given
  Field(const Where& parent, std::string path, Problems& problems);  ///< absent from the map at `parent`

  bool given() const { return node_ != nullptr; }
  explicit operator bool() const { return given(); }
  bool is_scalar() const { return node_ && node_->is_scalar(); }
  bool is_list() const { return node_ && node_->is_sequence(); }
  bool is_map() const { return node_ && node_->is_map(); }
  /// True if it is exactly this text, as in `is_word("auto")`.
  bool is_word(std::string_view word) const { return is_scalar() && node_->text == word; }

  const std::string& path() const { return path_; }
  const Where& where() const { return where_; }
  const Node* node() const { return node_; }  ///< null if absent

  /// The value as `type`; absence is a problem.
  template <class Type>
  Native<Type> as(const Type& type) const {
    const std::optional<Value> value = this->value(type);
    return value ? std::get<Native<Type>>(*value) : Native<Type>{};
  }
  std::optional<Value> value(const OptionType& type) const;

  BytesPerSecond bandwidth() const;     ///< 25 GB/s, 25 Gb/s
  FlopsPerSecond compute_rate() const;  ///< 15.7 TFLOP/s

  /// The elements of a list, with paths as "stages[0]"; anything else is a problem.
  std::vector<Field> items() const;
  /// The same, where one value may stand for a list of it: `partitioner: dp`. An empty list is a problem.
  std::vector<Field> items_or_one() const;

  /// The keys of a map; anything else, absence excepted, is a problem. Absence reads as an empty map.
  Reader map() const;

  /// The file that the text names: see find_input(). A name that is not there is a problem.
  std::filesystem::path input_file() const;

  void refuse(std::string_view reason) const;     ///< notes a problem here
  void expected(std::string_view allowed) const;  ///< notes "found …, allowed: `allowed`"

 private:
  friend class Reader;

  template <class Rate, class Parse>
  Rate rate(Parse parse, std::string_view allowed) const;

  const Node* node_ = nullptr;
  Where where_;
  std::string path_;
  Problems* problems_;
};

}  // namespace millrace::config
