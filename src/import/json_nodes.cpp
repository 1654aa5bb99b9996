// Builds nodes from the events of the JSON parser, which reads through an iterator that counts lines.
#include "import/json_nodes.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "config/text_check.h"
#include "import/json_place.h"

namespace millrace::import {
namespace {

using config::Node;
using config::NodeKind;
using config::Where;
using nlohmann::json;

constexpr std::size_t kDeepestNode = 64;

// Where the parser has read to.
struct Position {
  const char* at;
  const char* line_start;
  int line = 1;
};

class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, Position* position) : at_(at), position_(position) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    if (*at_ == '\n') {
      ++position_->line;
      position_->line_start = at_ + 1;
    }
    position_->at = ++at_;
    return *this;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  Position* position_;
};

class NodeHandler {
 public:
  NodeHandler(std::shared_ptr<const config::Source> source, const Position& position, const std::string& streamed,
              const NodeSink& sink)
      : source_(std::move(source)), position_(position), streamed_(streamed), sink_(sink) {}

  Node take_root() { return std::move(root_); }
  const std::optional<std::pair<std::size_t, std::string>>& fault() const { return fault_; }

  bool null() { return scalar(NodeKind::null, "", false); }
  bool boolean(bool value) { return scalar(NodeKind::scalar, value ? "true" : "false", false); }
  bool number_integer(std::int64_t value) { return scalar(NodeKind::scalar, fmt::to_string(value), false); }
  bool number_unsigned(std::uint64_t value) { return scalar(NodeKind::scalar, fmt::to_string(value), false); }
  bool number_float(double, const std::string& written) { return scalar(NodeKind::scalar, written, false); }
  bool binary(json::binary_t&) { return false; }  // not in text
  bool string(std::string& value) {
    last_ = before(value.size() + 2);
    return scalar(NodeKind::scalar, std::move(value), true);
  }
  bool key(std::string& name) {
    last_ = before(name.size() + 2);
    if (skipping_ == 0) open_.back().keys.push_back({std::move(name), last_});
    return true;
  }
  bool start_object(std::size_t) { return start(NodeKind::map); }
  bool start_array(std::size_t) { return start(NodeKind::sequence); }
  bool end_object() { return end(); }
  bool end_array() { return end(); }
  bool parse_error(std::size_t byte, const std::string&, const json::exception& error) {
    fault_ = {byte, reason_of(error.what())};
    return false;
  }

 private:
  Where before(std::size_t length) const {
    const auto read = static_cast<std::size_t>(position_.at - position_.line_start);
    return {source_, position_.line, static_cast<int>(read - std::min(read, length)) + 1};
  }
  // Elements of the streamed list are the third level: root, list, element.
  bool streams_elements() const {
    return open_.size() == 2 && open_[0].is_map() && open_[1].is_sequence() && open_[0].keys.back().text == streamed_;
  }

  bool start(NodeKind kind) {
    last_ = before(1);
    if (open_.size() + skipping_ >= kDeepestNode) {
      config::refuse_at(last_, fmt::format("nested beyond {} levels", kDeepestNode));
    }
    if (skipping_ > 0 || (!sink_ && streams_elements())) {
      ++skipping_;
      return true;
    }
    open_.emplace_back();
    open_.back().kind = kind;
    open_.back().where = last_;
    return true;
  }
  bool end() {
    if (skipping_ > 0) {
      --skipping_;
      return true;
    }
    Node node = std::move(open_.back());
    open_.pop_back();
    if (node.is_map()) refuse_duplicates(node);
    place(std::move(node));
    return true;
  }
  // The place of a number is told by the key or value before it: the parser has read beyond it.
  bool scalar(NodeKind kind, std::string text, bool quoted) {
    if (skipping_ > 0) return true;
    Node node;
    node.kind = kind;
    node.text = std::move(text);
    node.quoted = quoted;
    node.where = last_;
    place(std::move(node));
    return true;
  }
  void place(Node node) {
    if (open_.empty()) {
      root_ = std::move(node);
    } else if (streams_elements()) {
      if (sink_) sink_(std::move(node));
    } else {
      open_.back().items.push_back(std::move(node));
    }
  }
  void refuse_duplicates(const Node& map) const {
    std::vector<std::size_t> order(map.keys.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const int compared = map.keys[a].text.compare(map.keys[b].text);
      return compared != 0 ? compared < 0 : a < b;
    });
    for (std::size_t i = 1; i < order.size(); ++i) {
      const config::Key& first = map.keys[order[i - 1]];
      const config::Key& second = map.keys[order[i]];
      if (first.text != second.text) continue;
      config::refuse_at(second.where,
                        fmt::format("key '{}' is given twice, first in line {}", second.text, first.where.line));
    }
  }

  std::shared_ptr<const config::Source> source_;
  const Position& position_;
  const std::string& streamed_;
  const NodeSink& sink_;
  std::vector<Node> open_;
  std::size_t skipping_ = 0;  // open lists and maps that are not kept
  Where last_;
  Node root_;
  std::optional<std::pair<std::size_t, std::string>> fault_;  // byte, reason
};

}  // namespace

Node load_json(std::string_view text, const std::shared_ptr<const config::Source>& source, const std::string& streamed,
               const NodeSink& sink) {
  text = without_byte_order_mark(text);
  Position position{text.data(), text.data()};
  NodeHandler handler(source, position, streamed, sink);
  const CountingIterator first(text.data(), &position), last(text.data() + text.size(), &position);
  if (!json::sax_parse(first, last, &handler)) {
    const auto& [byte, reason] = handler.fault().value();
    const auto [line, column] = line_and_column(text, byte > 0 ? byte - 1 : 0);
    config::refuse_at({source, line, column}, "not JSON: " + reason);
  }
  Node root = handler.take_root();
  if (!root.is_map()) {
    config::refuse_at({source, 1, 1},
                      fmt::format("found {} as the whole document, allowed: a map of keys", found(root)));
  }
  return root;
}

}  // namespace millrace::import
