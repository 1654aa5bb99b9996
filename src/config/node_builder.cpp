// Builds plain nodes from the events of the YAML parser (private to document.cpp: it shows the library's types).
#include "config/node_builder.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "config/text_check.h"

namespace millrace::config {
namespace {

constexpr std::size_t kDeepest = 64;
constexpr std::size_t kMostUnfolded = 1'000'000;

std::size_t depth(const Node& node) {
  std::size_t deepest = 0;
  for (const Node& item : node.items) deepest = std::max(deepest, depth(item));
  return node.is_map() || node.is_sequence() ? deepest + 1 : 0;
}

std::size_t count(const Node& node) {
  return std::accumulate(node.items.begin(), node.items.end(), std::size_t{1},
                         [](std::size_t sum, const Node& item) { return sum + count(item); });
}

void check_depth(std::size_t levels, const Where& where) {
  if (levels > kDeepest) refuse_at(where, fmt::format("nested too deeply; at most {} levels are read", kDeepest));
}

}  // namespace

NodeBuilder::NodeBuilder(std::shared_ptr<const Source> source, Problems& problems)
    : source_(std::move(source)), problems_(problems) {}

Where NodeBuilder::at(const YAML::Mark& mark) const { return {source_, mark.line + 1, mark.column + 1}; }

// The key path of what is read inside the outer `levels` open collections.
std::string NodeBuilder::path(std::size_t levels) const {
  std::string text;
  for (std::size_t i = 0; i < levels; ++i) {
    const Open& level = open_[i];
    if (level.node.is_sequence()) {
      text += fmt::format("[{}]", level.node.items.size());
    } else if (!level.expects_key) {
      text += (text.empty() ? "" : ".") + level.node.keys.back().text;
    }
  }
  return text;
}

void NodeBuilder::OnDocumentStart(const YAML::Mark& mark) {
  if (started_)
    refuse_at(at(mark), "a second document begins here, allowed: one; is a '---', an indent or a bracket wrong?");
  started_ = true;
}

// The parser gives "?" to what has no tag and "!" to quoted text.
void NodeBuilder::check_tag(const Where& where, const std::string& tag) {
  if (tag.empty() || tag == "?" || tag == "!") return;
  problems_.add(where, path(open_.size()), fmt::format("tag '{}' is not supported; leave it out", tag));
}

void NodeBuilder::OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) {
  Node node;
  node.where = at(mark);
  // The parser marks a missing value at whatever follows it: its key is the place to cite.
  const bool is_value = !open_.empty() && open_.back().node.is_map() && !open_.back().expects_key;
  if (is_value) node.where = open_.back().node.keys.back().where;
  place(std::move(node), anchor);
}

void NodeBuilder::OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                           const std::string& value) {
  Node node = Node::plain(value);
  node.quoted = tag == "!";
  node.where = at(mark);
  last_quoted_ = node.quoted ? std::optional(static_cast<std::size_t>(mark.pos)) : std::nullopt;
  check_tag(node.where, tag);
  place(std::move(node), anchor);
}

void NodeBuilder::OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) {
  const auto target = anchors_.find(anchor);
  if (target == anchors_.end()) refuse_at(at(mark), "an alias inside what it stands for");
  check_depth(open_.size() + depth(target->second), at(mark));
  unfolded_ += count(target->second);
  if (unfolded_ > kMostUnfolded) refuse_at(at(mark), "aliases that unfold to more than a million values");
  place(target->second, YAML::NullAnchor);
}

void NodeBuilder::open(NodeKind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
  const Where where = at(mark);
  check_tag(where, tag);
  check_depth(open_.size() + 1, where);
  Node node;
  node.kind = kind;
  node.where = where;
  open_.push_back({std::move(node), anchor, kind == NodeKind::map});
}

void NodeBuilder::OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                                  YAML::EmitterStyle::value) {
  open(NodeKind::sequence, mark, tag, anchor);
}

void NodeBuilder::OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                             YAML::EmitterStyle::value) {
  open(NodeKind::map, mark, tag, anchor);
}

void NodeBuilder::OnMapEnd() {
  drop_duplicates(open_.back().node);
  close();
}

void NodeBuilder::close() {
  Open done = std::move(open_.back());
  open_.pop_back();
  place(std::move(done.node), done.anchor);
}

void NodeBuilder::place(Node node, YAML::anchor_t anchor) {
  if (anchor != YAML::NullAnchor) anchors_[anchor] = node;
  if (open_.empty()) {
    root_ = std::move(node);
    return;
  }
  Open& parent = open_.back();
  if (parent.node.is_map() && parent.expects_key) {
    place_key(node);
    return;
  }
  parent.node.items.push_back(std::move(node));
  parent.expects_key = parent.node.is_map();
}

void NodeBuilder::place_key(const Node& node) {
  if (!node.is_scalar()) refuse_at(node.where, fmt::format("found {} as a key, allowed: a word", found(node)));
  Open& parent = open_.back();
  parent.node.keys.push_back({node.text, node.where});
  parent.expects_key = false;
  if (node.text == "<<")
    problems_.add(node.where, path(open_.size()), "merge keys ('<<') are not supported; write the keys out");
}

void NodeBuilder::drop_duplicates(Node& map) {
  std::vector<std::size_t> order(map.keys.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return map.keys[a].text < map.keys[b].text; });

  std::vector<bool> drop(order.size(), false);
  const std::string parent = path(open_.size() - 1);
  bool any = false;
  std::size_t first = 0;
  for (std::size_t i = 1; i < order.size(); ++i) {
    const Key& key = map.keys[order[i]];
    if (key.text != map.keys[order[first]].text) {
      first = i;
      continue;
    }
    const int before = map.keys[order[first]].where.line;
    problems_.add(key.where, parent.empty() ? key.text : parent + "." + key.text,
                  fmt::format("duplicate key: given in line {} and again in line {}", before, key.where.line));
    drop[order[i]] = any = true;
  }
  if (!any) return;
  Node kept = Node::map();
  kept.where = map.where;
  for (std::size_t i = 0; i < drop.size(); ++i) {
    if (drop[i]) continue;
    kept.keys.push_back(std::move(map.keys[i]));
    kept.items.push_back(std::move(map.items[i]));
  }
  map = std::move(kept);
}

}  // namespace millrace::config
