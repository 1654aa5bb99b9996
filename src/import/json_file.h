// A JSON document of another tool, read so that every error tells file, line, path of the key and what is allowed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace millrace::import {

struct JsonFile;

/// A value of a JsonFile; lives no longer than the file. Getters throw InvalidInput,
/// "x.json:7: nodes[3].size: found -1, allowed: number, at least 0".
class JsonValue {
 public:
  JsonValue(const JsonFile& file, const nlohmann::json& value) : file_(&file), value_(&value) {}

  JsonValue at(std::string_view key) const;                   ///< a key that must be there
  std::optional<JsonValue> find(std::string_view key) const;  ///< a key that may be absent or null
  std::vector<JsonValue> items() const;                       ///< elements of a list
  std::vector<std::pair<std::string, JsonValue>> entries() const;

  double number() const;  ///< finite, at least 0
  double bytes() const;   ///< a number below 2^63
  std::int64_t integer(std::int64_t minimum, std::int64_t maximum) const;
  bool flag() const;  ///< true, false, 1 or 0
  std::string text() const;

  [[noreturn]] void refuse(std::string_view reason) const;
  [[noreturn]] void expected(std::string_view allowed) const;  ///< "found …, allowed: `allowed`"

 private:
  const nlohmann::json& object() const;

  const JsonFile* file_;
  const nlohmann::json* value_;
};

struct JsonFile {
  /// \throws InvalidInput  what is no JSON (with line and column), a key given twice, nesting beyond 64 levels.
  JsonFile(std::string name, std::string_view text);
  ~JsonFile();
  JsonFile(const JsonFile&) = delete;
  JsonFile& operator=(const JsonFile&) = delete;

  JsonValue root() const { return {*this, *document}; }

  std::string name;       ///< as errors cite it
  std::string_view text;  ///< must outlive this, for the lines of errors
  std::unique_ptr<nlohmann::json> document;
};

}  // namespace millrace::import
