// Nodes and edges of a Piper file become cost operators; all degrees and variants are carried.
#include "import/piper.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "import/names.h"
#include "import/nodes.h"

namespace millrace::import {
namespace {

constexpr std::int64_t kMostDevices = 1'000'000;
constexpr std::int64_t kMostBatch = std::int64_t{1} << 40;

struct PiperEdge {
  NodeEdge nodes;
  double bytes;
};

struct Layers {
  std::vector<JsonValue> nodes;
  NodeIndex index;
  std::vector<PiperEdge> edges;
  std::vector<std::size_t> order;  // nodes in the order of operators
  std::vector<OpId> op_of;         // by node
};

std::vector<PiperEdge> read_edges(const JsonValue& list, const NodeIndex& index) {
  std::vector<PiperEdge> edges;
  std::set<std::pair<std::size_t, std::size_t>> known;
  for (const JsonValue& item : list.items()) {
    const NodeEdge nodes = read_edge(item, index);
    if (!known.insert({nodes.from, nodes.to}).second) item.refuse("this edge is given twice");
    edges.push_back({nodes, item.at("communicationCost").bytes()});
  }
  return edges;
}

Layers read_layers(const JsonValue& root) {
  std::vector<JsonValue> nodes = root.at("nodes").items();
  if (nodes.empty()) root.at("nodes").refuse("found no nodes, allowed: at least one");
  NodeIndex index(nodes);
  std::vector<PiperEdge> edges = read_edges(root.at("edges"), index);
  Successors successors(nodes.size());
  for (const PiperEdge& edge : edges) successors[edge.nodes.from].push_back(edge.nodes.to);
  refuse_cycle(root.at("edges"), successors, index);
  Layers layers{std::move(nodes), std::move(index), std::move(edges), depth_first_order(successors), {}};
  layers.op_of.resize(layers.order.size());
  for (std::size_t i = 0; i < layers.order.size(); ++i) layers.op_of[layers.order[i]] = static_cast<OpId>(i);
  return layers;
}

std::int64_t number_of(const JsonValue& place, const std::string& key, std::string_view allowed) {
  std::int64_t value = 0;
  const auto result = std::from_chars(key.data(), key.data() + key.size(), value);
  if (result.ec != std::errc() || result.ptr != key.data() + key.size()) {
    place.refuse(fmt::format("found key '{}', allowed: {}", key, allowed));
  }
  return value;
}

// Bytes by neighbour; exactly the `neighbours` must be there.
std::vector<std::pair<OpId, double>> read_sync(const JsonValue& map, const Layers& layers,
                                               const std::set<std::size_t>& neighbours) {
  std::vector<std::pair<OpId, double>> sync;
  for (const auto& [key, bytes] : map.entries()) {
    const std::size_t node = layers.index.find(bytes, number_of(bytes, key, "the id of a node"));
    if (!neighbours.contains(node)) bytes.refuse(fmt::format("found node {}, allowed: one that an edge joins", key));
    sync.emplace_back(layers.op_of[node], bytes.bytes());
  }
  if (sync.size() < neighbours.size()) map.refuse("an edge of the node is missing, allowed: all of one direction");
  std::sort(sync.begin(), sync.end());
  return sync;
}

class VariantReader {
 public:
  explicit VariantReader(const Layers& layers)
      : layers_(layers), producers_(layers.nodes.size()), readers_(producers_) {
    for (const PiperEdge& edge : layers.edges) {
      producers_[edge.nodes.to].insert(edge.nodes.from);
      readers_[edge.nodes.from].insert(edge.nodes.to);
    }
  }

  // All degrees of a node, ascending.
  std::vector<TensorParallelModel::Degree> read(std::size_t node) const {
    std::vector<TensorParallelModel::Degree> degrees;
    const JsonValue map = layers_.nodes[node].at("TMPCs");
    for (const auto& [key, list] : map.entries()) {
      const std::int64_t degree = number_of(list, key, "a tensor-parallel degree");
      if (degree < 1 || degree > kMostDevices) list.refuse(fmt::format("found degree {}, allowed: at least 1", key));
      degrees.push_back({.degree = static_cast<int>(degree), .variants = {}});
      std::set<std::string> ids;
      for (const JsonValue& item : list.items()) {
        degrees.back().variants.push_back(read_variant(item, node));
        const std::string& id = degrees.back().variants.back().id;
        if (!ids.insert(id).second) item.refuse(fmt::format("variant '{}' is given twice", id));
      }
      if (ids.empty()) degrees.pop_back();  // the node does not run at this degree
    }
    if (degrees.empty()) map.refuse("found no variants, allowed: at least one at some degree");
    std::sort(degrees.begin(), degrees.end(), [](const auto& a, const auto& b) { return a.degree < b.degree; });
    const auto equal = [](const auto& a, const auto& b) { return a.degree == b.degree; };
    if (std::adjacent_find(degrees.begin(), degrees.end(), equal) != degrees.end()) {
      map.refuse("a degree is given twice");
    }
    return degrees;
  }

 private:
  TensorParallelModel::Variant read_variant(const JsonValue& item, std::size_t node) const {
    return {.id = item.at("id").text(),
            .time_per_sample = item.at("timePerSample").number(),
            .parameter_bytes = item.at("parameterSize").bytes(),
            .memory_a = item.at("memoryUsageA").bytes(),
            .memory_b = item.at("memoryUsageB").bytes(),
            .sync_forward = read_sync(item.at("syncTimeFw"), layers_, producers_[node]),
            .sync_backward = read_sync(item.at("syncTimeBw"), layers_, readers_[node])};
  }

  const Layers& layers_;
  std::vector<std::set<std::size_t>> producers_, readers_;  // by node
};

TensorParallelModel read_model(const JsonValue& root, const Layers& layers) {
  TensorParallelModel model;
  const VariantReader variants(layers);
  for (const std::size_t node : layers.order) model.ops.push_back(variants.read(node));
  for (const PiperEdge& edge : layers.edges) {
    model.edges.push_back({layers.op_of[edge.nodes.from], layers.op_of[edge.nodes.to], edge.bytes});
  }
  model.devices = static_cast<int>(root.at("maxDevices").integer(1, kMostDevices));
  model.memory_bytes = root.at("maxMemoryPerDevice").number();
  model.bytes_per_second = root.at("bandwidth").number();
  if (model.bytes_per_second == 0) root.at("bandwidth").expected("number, above 0");
  const auto batch = root.find("mbsInBatch");
  const auto other = root.find("maxBatchSize");
  model.batch = (batch || !other ? root.at("mbsInBatch") : *other).integer(1, kMostBatch);
  return model;
}

OpFigures figures_of(const TensorParallelModel::Degree& degree) {
  const auto plain = std::find_if(degree.variants.begin(), degree.variants.end(),
                                  [](const TensorParallelModel::Variant& v) { return v.id == "vanilla"; });
  const TensorParallelModel::Variant& variant = plain != degree.variants.end() ? *plain : degree.variants.front();
  OpFigures figures{.forward_s = variant.time_per_sample / 3,
                    .backward_input_s = variant.time_per_sample * 2 / 3,
                    .parameter_bytes = whole_bytes(variant.parameter_bytes),
                    .saved_bytes = whole_bytes(variant.memory_a)};
  if (figures.parameter_bytes > 0) {
    figures.backward_input_s = variant.time_per_sample / 3;
    figures.backward_weight_s = figures.backward_input_s;
  }
  return figures;
}

std::vector<CostOperator> cost_operators(const Layers& layers, const TensorParallelModel& model) {
  std::vector<NodeName> names;
  for (std::size_t i = 0; i < layers.nodes.size(); ++i) {
    const auto name = layers.nodes[i].find("name");
    names.push_back({name ? name->text() : "", std::to_string(layers.index.ids()[i])});
  }
  const std::vector<std::string> valid = operator_names(names);
  std::vector<CostOperator> operators(layers.order.size());
  for (std::size_t i = 0; i < operators.size(); ++i) {
    operators[i].name = valid[layers.order[i]];
    operators[i].figures = figures_of(model.ops[i].front());
  }
  for (const TensorParallelModel::Edge& edge : model.edges) {
    std::int64_t& output = operators[static_cast<std::size_t>(edge.from)].figures.output_bytes;
    output = std::max(output, whole_bytes(edge.bytes));
    operators[static_cast<std::size_t>(edge.to)].reads.push_back(static_cast<std::size_t>(edge.from));
  }
  for (CostOperator& op : operators) std::sort(op.reads.begin(), op.reads.end());
  return operators;
}

}  // namespace

Graph read_piper(const JsonFile& file) {
  const JsonValue root = file.root();
  const Layers layers = read_layers(root);
  TensorParallelModel model = read_model(root, layers);
  const std::vector<CostOperator> operators = cost_operators(layers, model);
  return build_graph(file.name, operators, {.format = "piper", .extra = std::move(model)});
}

Graph read_piper(std::string_view text, const std::string& file) { return read_piper(JsonFile(file, text)); }

}  // namespace millrace::import
