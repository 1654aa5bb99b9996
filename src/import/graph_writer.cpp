// Writes a graph as a graph file.
#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/errors.h"
#include "config/emit.h"
#include "config/quantity.h"
#include "import/carried_section.h"
#include "import/graph_file.h"

namespace millrace::import {
namespace {

using config::Node;

// The unit a person would choose where it loses nothing, else seconds.
Node duration(double seconds) {
  static constexpr std::array<std::pair<const char*, double>, 3> units{{{"s", 1}, {"ms", 1e3}, {"us", 1e6}}};
  for (const auto& [unit, per_second] : units) {
    const double value = seconds * per_second;
    const std::string text = fmt::format("{} {}", value, unit);
    if (value >= 1 && value < 1e6 && config::parse_duration(text) == Seconds(seconds)) return Node::plain(text);
  }
  return Node::plain(fmt::format("{} s", seconds));
}

Node size(std::int64_t bytes) {
  static constexpr std::array<std::pair<const char*, int>, 3> units{{{"GiB", 30}, {"MiB", 20}, {"KiB", 10}}};
  for (const auto& [unit, shift] : units) {
    const std::int64_t one = std::int64_t{1} << shift;
    if (bytes >= one && bytes % one == 0) return Node::plain(fmt::format("{} {}", bytes >> shift, unit));
  }
  return Node::plain(fmt::format("{} B", bytes));
}

Node list_of(const Dims& dims) { return config::to_node(config::Value(dims)); }

Node data(const Graph& graph, std::span<const TensorId> tensors) {
  Node list = Node::sequence();
  for (const TensorId id : tensors) {
    const Tensor& tensor = graph.tensor(id);
    Node& item = list.items.emplace_back(Node::map());
    item.add("name", Node::quote(tensor.name));
    item.add("shape", list_of(tensor.shape.dims));
    item.add("element", Node::quote(tensor.shape.element == ElementType::index ? "index" : "real"));
  }
  return list;
}

void add_figures(const OpFigures& figures, Node& item) {
  item.add("forward", duration(figures.forward_s));
  if (figures.backward_input_s == figures.backward_weight_s) {
    item.add("backward", duration(figures.backward_input_s + figures.backward_weight_s));
  } else {
    item.add("backward_input", duration(figures.backward_input_s));
    item.add("backward_weight", duration(figures.backward_weight_s));
  }
  if (figures.parameter_bytes > 0) item.add("parameters", size(figures.parameter_bytes));
  if (figures.output_bytes > 0) item.add("output", size(figures.output_bytes));
  if (figures.saved_bytes != figures.output_bytes) item.add("saved", size(figures.saved_bytes));
}

// A real that is whole keeps its point, so that it reads back as a real.
Node attribute(const Attribute& value) {
  if (const auto* real = std::get_if<double>(&value)) {
    std::string text = fmt::format("{}", *real);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return Node::plain(text);
  }
  return std::visit([](const auto& typed) { return config::to_node(config::Value(typed)); }, value);
}

class Writer {
 public:
  explicit Writer(const Graph& graph) : graph_(graph) {}

  Node operator_node(OpId id) {
    const Operator& op = graph_.op(id);
    Node item = Node::map();
    item.add("name", Node::quote(op.name));
    item.add("kind", Node::quote(op.schema->name));
    Node& inputs = item.add("inputs", Node::sequence());
    for (const TensorId input : op.inputs) inputs.items.push_back(Node::quote(reference(input)));
    if (!op.layer.empty()) item.add("layer", Node::quote(op.layer));
    if (const OpFigures* figures = graph_.figures(id)) {
      add_figures(*figures, item);
      return item;
    }
    for (const auto& [name, value] : op.attributes.all()) item.add(name, attribute(value));
    add_tied(op, item);
    return item;
  }

 private:
  // An operator stands for its first output.
  std::string reference(TensorId id) const {
    const Tensor& tensor = graph_.tensor(id);
    if (tensor.producer < 0) return tensor.name;
    const Operator& producer = graph_.op(tensor.producer);
    return producer.outputs.front() == id ? producer.name : tensor.name;
  }

  void add_tied(const Operator& op, Node& item) {
    Node list = Node::sequence();
    std::size_t shared = 0;  // length up to the last tied one
    for (const TensorId id : op.parameters) {
      const bool known = !seen_.insert(id).second;
      list.items.push_back(known ? Node::quote(graph_.tensor(id).name) : Node());
      if (known) shared = list.items.size();
    }
    list.items.resize(shared);
    if (shared > 0) item.add("tied", std::move(list));
  }

  const Graph& graph_;
  std::set<TensorId> seen_;  // parameters of the operators before
};

nlohmann::ordered_json to_json(const Node& node) {
  using nlohmann::ordered_json;
  if (node.is_map()) {
    ordered_json map = ordered_json::object();
    for (std::size_t i = 0; i < node.items.size(); ++i) map[node.keys[i].text] = to_json(node.items[i]);
    return map;
  }
  if (node.is_sequence()) {
    ordered_json list = ordered_json::array();
    for (const Node& item : node.items) list.push_back(to_json(item));
    return list;
  }
  if (node.is_null()) return nullptr;
  if (node.quoted || !ordered_json::accept(node.text)) return node.text;
  return ordered_json::parse(node.text);
}

}  // namespace

std::string write_graph_file(const Graph& graph, std::int64_t batch, GraphForm form) {
  Node root = Node::map();
  root.add("millrace_graph", Node::plain("1"));
  root.add("name", Node::quote(graph.name()));
  if (batch != 1) root.add("batch", Node::plain(std::to_string(batch)));
  if (!graph.inputs().empty()) root.add("inputs", data(graph, graph.inputs()));
  if (!graph.labels().empty()) root.add("labels", data(graph, graph.labels()));
  Node& operators = root.add("operators", Node::sequence());
  Writer writer(graph);
  for (OpId id = 0; id < graph.size(); ++id) operators.items.push_back(writer.operator_node(id));
  if (auto carried = write_carried(graph)) root.add("carried", std::move(*carried));
  return form == GraphForm::yaml ? config::to_yaml(root) : to_json(root).dump(1) + "\n";
}

}  // namespace millrace::import
