// Writes nodes as YAML that a person can read and edit, and that reads back as the same nodes.
#include "config/emit.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "config/number.h"

namespace millrace::config {
namespace {

bool is_word_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// A cautious part of what YAML allows without quotes, in block and flow style alike.
bool is_safe_plain(std::string_view text) {
  if (text.empty()) return false;
  const std::size_t first = text.find_first_not_of("+-./");
  if (first == std::string_view::npos || first > 3 || !is_word_character(text[first])) return false;
  if (text.substr(0, 2) == "--") return false;
  const auto is_allowed = [](char c) { return is_word_character(c) || std::string_view("+-./*@%() ").find(c) < 10; };
  return std::all_of(text.begin(), text.end(), is_allowed) && text.back() != ' ';
}

// What some YAML reader, of 1.1 or 1.2, takes for more than text.
bool reads_as_other(std::string_view text) {
  static constexpr std::array<std::string_view, 10> words{"null", "true", "false", "yes", "no",
                                                          "on",   "off",  "y",     "n",   "~"};
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (std::find(words.begin(), words.end(), lower) != words.end()) return true;
  if (lower == ".nan" || lower == ".inf" || lower == "+.inf" || lower == "-.inf") return true;
  return number_length(text) == text.size() || lower.substr(0, 2) == "0x" || lower.substr(0, 2) == "0o";
}

std::string double_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out.append({'\\', c});
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// A plain scalar that looks like a number or a boolean is one and stays plain; a quoted one is text and is quoted.
std::string scalar(const std::string& text, bool is_text) {
  const bool plain = is_safe_plain(text) && !(is_text && reads_as_other(text));
  return plain ? text : double_quoted(text);
}

bool is_flow(const Node& node) {
  if (node.is_map()) return node.items.empty();
  return std::all_of(node.items.begin(), node.items.end(), is_flow);
}

std::string flow(const Node& node) {
  if (node.is_null()) return "null";
  if (node.is_scalar()) return scalar(node.text, node.quoted);
  if (node.is_map()) return "{}";
  std::string out = "[";
  for (const Node& item : node.items) out.append(out.size() > 1 ? ", " : "").append(flow(item));
  return out + "]";
}

// Writes a map or a list of maps whose first line is already indented.
void block(const Node& node, std::size_t indent, std::string& out) {
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    if (i > 0) out.append(indent, ' ');
    const Node& item = node.items[i];
    out += node.is_map() ? scalar(node.keys[i].text, true) + ":" : "-";
    if (is_flow(item)) {
      out.append(" ").append(flow(item)).append("\n");
    } else if (node.is_map()) {
      out.append("\n").append(indent + 2, ' ');
      block(item, indent + 2, out);
    } else {
      out += " ";
      block(item, indent + 2, out);
    }
  }
}

struct ToNode {
  Node operator()(bool value) const { return Node::plain(value ? "true" : "false"); }
  Node operator()(std::int64_t value) const { return Node::plain(fmt::to_string(value)); }
  Node operator()(double value) const { return Node::plain(fmt::format("{}", value)); }
  Node operator()(const std::string& value) const { return Node::quote(value); }
  Node operator()(Seconds value) const { return Node::plain(fmt::format("{} s", value.value())); }
  Node operator()(Bytes value) const { return Node::plain(fmt::format("{} B", value.value())); }
  Node operator()(const std::vector<std::int64_t>& values) const {
    Node list = Node::sequence();
    for (const std::int64_t value : values) list.items.push_back(Node::plain(fmt::to_string(value)));
    return list;
  }
};

}  // namespace

std::string to_yaml(const Node& node) {
  if (is_flow(node)) return flow(node) + "\n";
  std::string out;
  block(node, 0, out);
  return out;
}

Node to_node(const Value& value) { return std::visit(ToNode{}, value); }

Node to_node(const Values& values) {
  Node map = Node::map();
  for (const auto& [name, value] : values.all()) map.add(name, to_node(value));
  return map;
}

}  // namespace millrace::config
