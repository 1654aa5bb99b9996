// Changes a document before it is read, for `--set path.to.key=VALUE` and for the axes of a sweep.
#include "config/set.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "config/document.h"
#include "config/number.h"

namespace millrace::config {
namespace {

constexpr std::size_t kMostSteps = 64;

// One step down the tree: a key of a map, or an element of a list.
struct Step {
  std::string_view key;  // empty for an element
  std::size_t index = 0;
};

std::optional<std::size_t> parse_index(std::string_view text) {
  const auto parsed = parse_integer(text);
  if (parsed.fault != NumberFault::none || text[0] == '-' || text[0] == '+') return std::nullopt;
  return static_cast<std::size_t>(parsed.value);
}

// Steps of "a.list[0].key"; nothing if that is not its form.
std::optional<std::vector<Step>> parse_path(std::string_view path) {
  std::vector<Step> steps;
  bool expects_key = true;
  while (!path.empty() || expects_key) {
    if (expects_key) {
      const std::string_view key = path.substr(0, path.find_first_of(".[]"));
      if (key.empty()) return std::nullopt;
      steps.push_back({key, 0});
      path.remove_prefix(key.size());
      expects_key = false;
    } else if (path[0] == '.') {
      path.remove_prefix(1);
      expects_key = true;
    } else {
      const std::size_t end = path.find(']');
      if (path[0] != '[' || end == std::string_view::npos) return std::nullopt;
      const auto index = parse_index(path.substr(1, end - 1));
      if (!index) return std::nullopt;
      steps.push_back({{}, *index});
      path.remove_prefix(end + 1);
    }
  }
  if (steps.size() > kMostSteps) return std::nullopt;
  return steps;
}

std::string to_text(std::span<const Step> steps, bool with_indices) {
  std::string text;
  for (const Step& step : steps) {
    if (!step.key.empty()) text.append(text.empty() ? "" : ".").append(step.key);
    if (step.key.empty() && with_indices) text += fmt::format("[{}]", step.index);
  }
  return text;
}

void write_out(Node& word, const ShortForm& form) {
  Node map = Node::map();
  map.where = word.where;
  if (form.key.empty()) {
    Node options = Node::map();
    options.where = word.where;
    map.add(word.text, std::move(options));
  } else {
    map.add(form.key, word);
  }
  word = std::move(map);
}

// Makes `node`, which the steps `before` lead to, a map if it may be one; says why if not.
std::optional<std::string> make_map(Node& node, std::span<const Step> before, std::span<const ShortForm> forms) {
  if (node.is_null()) {
    const Where where = node.where;
    node = Node::map();
    node.where = where;
  }
  if (node.is_scalar()) {
    const std::string place = to_text(before, false);
    const auto form = std::find_if(forms.begin(), forms.end(), [&](const ShortForm& f) { return f.path == place; });
    if (form != forms.end()) write_out(node, *form);
  }
  if (node.is_map()) return std::nullopt;
  const std::string_view hint = node.is_sequence() ? "; choose an element, as in list[0]" : "";
  return fmt::format("found {} on the way, allowed: a map{}", found(node), hint);
}

std::optional<std::string> check_element(const Node& node, std::size_t index) {
  if (!node.is_sequence()) return fmt::format("found {} on the way, allowed: a list", found(node));
  if (index < node.items.size()) return std::nullopt;
  return fmt::format("there is no element {}; the list has {}, counted from 0", index, node.items.size());
}

}  // namespace

void set_value(Node& root, std::string_view path, Node value, std::span<const ShortForm> short_forms,
               Problems& problems) {
  const Where where = value.where;
  const auto steps = parse_path(path);
  if (!steps) {
    problems.add(
        where, "",
        fmt::format("found '{}' as the path of a key, allowed: names and elements, as in a.list[0].key", path));
    return;
  }
  Node* node = &root;
  for (std::size_t i = 0; i < steps->size(); ++i) {
    const Step& step = (*steps)[i];
    const std::span<const Step> before(steps->data(), i);
    const auto fault = step.key.empty() ? check_element(*node, step.index) : make_map(*node, before, short_forms);
    if (fault) {
      problems.add(where, to_text(before, true), *fault);
      return;
    }
    node = step.key.empty() ? &node->items[step.index] : &node->at_or_new(step.key, where);
  }
  *node = std::move(value);
}

void apply_set(Node& root, std::string_view assignment, std::span<const ShortForm> short_forms, Problems& problems) {
  const auto folder = root.where.source ? root.where.source->folder : std::filesystem::path();
  const auto source = std::make_shared<Source>(Source{fmt::format("--set {}", assignment), folder, false});
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) {
    problems.add({source, 1, 1}, "", "found no '=', allowed: path.to.key=VALUE");
    return;
  }
  Node value = load_text(assignment.substr(equals + 1), source, problems, Root::any);
  set_value(root, assignment.substr(0, equals), std::move(value), short_forms, problems);
}

}  // namespace millrace::config
