// A YAML document as plain values: copies share nothing, and every part knows where it was written.
#include "config/node.h"

#include <utility>

#include <fmt/format.h>

namespace millrace::config {
namespace {

constexpr std::size_t kLongestQuote = 60;  // a whole file pasted into a value must not flood the message

std::string shortened(const std::string& text) {
  if (text.size() <= kLongestQuote) return text;
  std::size_t end = kLongestQuote;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;  // never inside a UTF-8 character
  return text.substr(0, end) + "…";
}

std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20U || c == 0x7F) c = ' ';
  }
  return text;
}

}  // namespace

std::string to_text(const Where& where) {
  if (!where.source) return "";
  if (!where.source->cites_lines || where.line == 0) return where.source->name;
  return fmt::format("{}:{}:{}", where.source->name, where.line, where.column);
}

Node Node::plain(std::string text) {
  Node node;
  node.kind = NodeKind::scalar;
  node.text = std::move(text);
  return node;
}

Node Node::quote(std::string text) {
  Node node = plain(std::move(text));
  node.quoted = true;
  return node;
}

Node Node::sequence(std::vector<Node> items) {
  Node node;
  node.kind = NodeKind::sequence;
  node.items = std::move(items);
  return node;
}

Node Node::map() {
  Node node;
  node.kind = NodeKind::map;
  return node;
}

std::optional<std::size_t> Node::index_of(std::string_view key) const {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].text == key) return i;
  }
  return std::nullopt;
}

const Node* Node::find(std::string_view key) const {
  const auto index = index_of(key);
  return index ? &items[*index] : nullptr;
}

Node& Node::at_or_new(std::string_view key, const Where& new_where) {
  if (const auto index = index_of(key)) return items[*index];
  Node made;
  made.where = new_where;
  return add(std::string(key), std::move(made));
}

Node& Node::add(std::string key, Node value) {
  keys.push_back({std::move(key), value.where});
  return items.emplace_back(std::move(value));
}

std::string found(const Node& node) {
  switch (node.kind) {
    case NodeKind::null:
      return "nothing";
    case NodeKind::sequence:
      return "a list";
    case NodeKind::map:
      return "a map";
    case NodeKind::scalar:
      break;
  }
  const std::string text = one_line(shortened(node.text));
  return node.quoted ? fmt::format("\"{}\"", text) : fmt::format("'{}'", text);
}

}  // namespace millrace::config
