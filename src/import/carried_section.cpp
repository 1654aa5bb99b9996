// Reads and writes the extras of each format.
#include "import/carried_section.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "config/emit.h"
#include "config/reader.h"

namespace millrace::import {
namespace {

using config::Field;
using config::Integer;
using config::Node;
using config::Reader;

const config::Real kNotNegative{.minimum = 0};
const Integer kCount{.minimum = 0, .maximum = std::numeric_limits<int>::max()};

class CarriedReader {
 public:
  explicit CarriedReader(const std::vector<std::string>& operators) : operators_(operators) {
    for (std::size_t i = 0; i < operators.size(); ++i) positions_.emplace(operators[i], static_cast<OpId>(i));
  }

  SplitModel split(Reader& reader) const {
    SplitModel model;
    model.accelerators = static_cast<int>(reader.required("accelerators", kCount));
    model.cpus = static_cast<int>(reader.required("cpus", kCount));
    model.memory_bytes = reader.required("memory", kNotNegative);
    for (const Field& field : one_each(reader.field("operators"))) {
      Reader op(field);
      model.ops.push_back({.accelerator_s = op.required("accelerator", kNotNegative),
                           .cpu_s = op.required("cpu", kNotNegative),
                           .bytes = op.required("size", kNotNegative),
                           .on_accelerator = op.required("on_accelerator", config::Boolean{}),
                           .nodes = op.required("nodes", Integer{.minimum = 0})});
    }
    for (const Field& field : reader.field("transfers").items()) {
      Reader transfer(field);
      model.transfers.push_back({.from = position(transfer.field("from")), .to = {}, .seconds = 0});
      std::vector<OpId>& to = model.transfers.back().to;
      for (const Field& item : transfer.field("to").items()) to.push_back(position(item));
      if (!std::is_sorted(to.begin(), to.end(), std::less_equal<>())) {
        transfer.field("to").expected("operators in their order, each once");
      }
      model.transfers.back().seconds = transfer.required("time", kNotNegative);
    }
    return model;
  }

  TensorParallelModel tensor_parallel(Reader& reader) const {
    TensorParallelModel model;
    model.devices = static_cast<int>(reader.required("devices", Integer{1, kCount.maximum}));
    model.memory_bytes = reader.required("memory", kNotNegative);
    model.bytes_per_second = reader.required("bandwidth", config::Real{std::numeric_limits<double>::min()});
    model.batch = reader.required("batch", Integer{.minimum = 1});
    for (const Field& field : one_each(reader.field("operators"))) {
      std::vector<TensorParallelModel::Degree>& degrees = model.ops.emplace_back();
      for (const Field& item : field.items()) degrees.push_back(degree(item));
      if (degrees.empty()) field.expected("at least one degree");
    }
    for (const Field& field : reader.field("edges").items()) {
      Reader edge(field);
      model.edges.push_back(
          {position(edge.field("from")), position(edge.field("to")), edge.required("bytes", kNotNegative)});
    }
    return model;
  }

  LayerProfile profile(Reader& reader) const {
    LayerProfile profile{.profile_batch = reader.required("profile_batch", config::Real{.minimum = 1}),
                         .is_input = std::vector<bool>(operators_.size(), false)};
    for (const Field& item : reader.field("inputs").items()) {
      if (const OpId id = position(item); id >= 0) profile.is_input[static_cast<std::size_t>(id)] = true;
    }
    return profile;
  }

 private:
  OpId position(const Field& field) const {
    const std::string name = field.as(config::Text{});
    const auto entry = positions_.find(name);
    if (entry != positions_.end()) return entry->second;
    if (field.is_scalar()) field.expected("the name of an operator");
    return -1;
  }

  // The elements of a list that has one for each operator.
  std::vector<Field> one_each(const Field& list) const {
    std::vector<Field> items = list.items();
    if (list.is_list() && items.size() != operators_.size()) {
      list.refuse(
          fmt::format("found {} elements, allowed: one for each of the {} operators", items.size(), operators_.size()));
    }
    return items;
  }

  std::vector<std::pair<OpId, double>> sync(const Field& list) const {
    std::vector<std::pair<OpId, double>> all;
    for (const Field& field : list.items()) {
      Reader neighbour(field);
      const OpId id = position(neighbour.field("operator"));
      all.emplace_back(id, neighbour.required("bytes", kNotNegative));
    }
    return all;
  }

  TensorParallelModel::Degree degree(const Field& field) const {
    Reader reader(field);
    TensorParallelModel::Degree degree{
        .degree = static_cast<int>(reader.required("degree", Integer{1, kCount.maximum})), .variants = {}};
    for (const Field& item : reader.field("variants").items()) {
      Reader variant(item);
      degree.variants.push_back({.id = variant.required("id", config::Text{}),
                                 .time_per_sample = variant.required("time", kNotNegative),
                                 .parameter_bytes = variant.required("parameters", kNotNegative),
                                 .memory_a = variant.required("memory_a", kNotNegative),
                                 .memory_b = variant.required("memory_b", kNotNegative),
                                 .sync_forward = sync(variant.field("sync_forward")),
                                 .sync_backward = sync(variant.field("sync_backward"))});
    }
    if (degree.variants.empty()) reader.field("variants").expected("at least one variant");
    return degree;
  }

  const std::vector<std::string>& operators_;
  std::unordered_map<std::string, OpId> positions_;
};

Node number(double value) { return config::to_node(config::Value(value)); }
Node whole(std::int64_t value) { return config::to_node(config::Value(value)); }

class CarriedWriter {
 public:
  CarriedWriter(const Graph& graph, Node& map) : graph_(graph), map_(map) {}

  void operator()(const std::monostate&) const {}

  void operator()(const SplitModel& model) const {
    map_.add("accelerators", whole(model.accelerators));
    map_.add("cpus", whole(model.cpus));
    map_.add("memory", number(model.memory_bytes));
    Node& operators = map_.add("operators", Node::sequence());
    for (const SplitModel::Op& op : model.ops) {
      Node& item = operators.items.emplace_back(Node::map());
      item.add("accelerator", number(op.accelerator_s));
      item.add("cpu", number(op.cpu_s));
      item.add("size", number(op.bytes));
      item.add("on_accelerator", Node::plain(op.on_accelerator ? "true" : "false"));
      item.add("nodes", whole(op.nodes));
    }
    Node& transfers = map_.add("transfers", Node::sequence());
    for (const SplitModel::Transfer& transfer : model.transfers) {
      Node& item = transfers.items.emplace_back(Node::map());
      item.add("from", name(transfer.from));
      Node& to = item.add("to", Node::sequence());
      for (const OpId reader : transfer.to) to.items.push_back(name(reader));
      item.add("time", number(transfer.seconds));
    }
  }

  void operator()(const TensorParallelModel& model) const {
    map_.add("devices", whole(model.devices));
    map_.add("memory", number(model.memory_bytes));
    map_.add("bandwidth", number(model.bytes_per_second));
    map_.add("batch", whole(model.batch));
    Node& operators = map_.add("operators", Node::sequence());
    for (const auto& degrees : model.ops) {
      Node& list = operators.items.emplace_back(Node::sequence());
      for (const TensorParallelModel::Degree& degree : degrees) list.items.push_back(degree_node(degree));
    }
    Node& edges = map_.add("edges", Node::sequence());
    for (const TensorParallelModel::Edge& edge : model.edges) {
      Node& item = edges.items.emplace_back(Node::map());
      item.add("from", name(edge.from));
      item.add("to", name(edge.to));
      item.add("bytes", number(edge.bytes));
    }
  }

  void operator()(const LayerProfile& profile) const {
    map_.add("profile_batch", number(profile.profile_batch));
    Node& inputs = map_.add("inputs", Node::sequence());
    for (OpId id = 0; id < graph_.size(); ++id) {
      if (profile.is_input[static_cast<std::size_t>(id)]) inputs.items.push_back(name(id));
    }
  }

 private:
  Node name(OpId id) const { return Node::quote(graph_.op(id).name); }

  Node sync(const std::vector<std::pair<OpId, double>>& neighbours) const {
    Node list = Node::sequence();
    for (const auto& [id, bytes] : neighbours) {
      Node& item = list.items.emplace_back(Node::map());
      item.add("operator", name(id));
      item.add("bytes", number(bytes));
    }
    return list;
  }

  Node degree_node(const TensorParallelModel::Degree& degree) const {
    Node node = Node::map();
    node.add("degree", whole(degree.degree));
    Node& variants = node.add("variants", Node::sequence());
    for (const TensorParallelModel::Variant& variant : degree.variants) {
      Node& item = variants.items.emplace_back(Node::map());
      item.add("id", Node::quote(variant.id));
      item.add("time", number(variant.time_per_sample));
      item.add("parameters", number(variant.parameter_bytes));
      item.add("memory_a", number(variant.memory_a));
      item.add("memory_b", number(variant.memory_b));
      item.add("sync_forward", sync(variant.sync_forward));
      item.add("sync_backward", sync(variant.sync_backward));
    }
    return node;
  }

  const Graph& graph_;
  Node& map_;
};

}  // namespace

Carried read_carried(const Field& field, const std::vector<std::string>& operators) {
  static const std::vector<std::string> formats{"dnn-partitioning", "piper", "pipedream"};
  Reader reader(field);
  Carried carried{.format = reader.required("format", config::OneOf{formats})};
  const CarriedReader read(operators);
  if (carried.format == formats[0]) {
    carried.extra = read.split(reader);
  } else if (carried.format == formats[1]) {
    carried.extra = read.tensor_parallel(reader);
  } else if (carried.format == formats[2]) {
    carried.extra = read.profile(reader);
  } else {
    reader.entries();  // without the format nothing can be said about the rest
  }
  return carried;
}

std::optional<Node> write_carried(const Graph& graph) {
  if (graph.carried() == nullptr) return std::nullopt;
  Node map = Node::map();
  map.add("format", Node::quote(graph.carried()->format));
  std::visit(CarriedWriter(graph, map), graph.carried()->extra);
  return map;
}

}  // namespace millrace::import
