// A YAML document as plain values: copies share nothing, and every part knows where it was written.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::config {

/// What a text was read from: a file, or a command line argument such as `--set a.b=1`.
struct Source {
  std::string name;              ///< as errors cite it
  std::filesystem::path folder;  ///< where the input files that it names are looked up first
  bool cites_lines = true;       ///< false for a command line argument
};

/// A place in a source; line and column (in bytes) count from 1.
struct Where {
  std::shared_ptr<const Source> source;
  int line = 0;
  int column = 0;
};

/// "exp.yaml:12:7", "--set a.b=1", or nothing without a source.
std::string to_text(const Where& where);

struct Key {
  std::string text;
  Where where;
};

enum class NodeKind { null, scalar, sequence, map };

struct Node {
  NodeKind kind = NodeKind::null;
  std::string text;         ///< of a scalar, without its quotes
  bool quoted = false;      ///< a quoted scalar is text, even if it reads like a number
  std::vector<Key> keys;    ///< of a map, in the order of the file: keys[i] names items[i]
  std::vector<Node> items;  ///< elements of a sequence, values of a map
  Where where;

  static Node plain(std::string text);  ///< a number, a boolean, a quantity
  static Node quote(std::string text);  ///< text
  static Node sequence(std::vector<Node> items = {});
  static Node map();

  bool is_null() const { return kind == NodeKind::null; }
  bool is_scalar() const { return kind == NodeKind::scalar; }
  bool is_sequence() const { return kind == NodeKind::sequence; }
  bool is_map() const { return kind == NodeKind::map; }

  std::optional<std::size_t> index_of(std::string_view key) const;  ///< of the first such key of a map
  const Node* find(std::string_view key) const;                     ///< null if there is none
  /// The value of `key`, made null if it is not there; \pre is_map().
  Node& at_or_new(std::string_view key, const Where& new_where);
  Node& add(std::string key, Node value);  ///< appends; \pre is_map() and the key is new
};

/// "found" for errors: `'text'`, `"text"` if quoted, `a list`, `a map`, `nothing`.
std::string found(const Node& node);

}  // namespace millrace::config
