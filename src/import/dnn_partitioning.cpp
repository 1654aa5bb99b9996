// Folds the nodes of a dnn-partitioning file into operators.
#include "import/dnn_partitioning.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "import/digraph.h"
#include "import/names.h"
#include "import/nodes.h"

namespace millrace::import {
namespace {

constexpr double kCostTolerance = 1e-6;  // the published planner's own, between the edges of one node
constexpr std::int64_t kMostAccelerators = 1'000'000;

struct FileNode {
  std::optional<std::int64_t> colour;
  bool backward;
  bool on_accelerator;
  double accelerator_s;
  double cpu_s;
  double bytes;
};

struct Workload {
  std::vector<FileNode> nodes;
  std::vector<std::string> names;  // valid and different, by node
  std::vector<NodeEdge> edges;
  std::vector<std::optional<double>> transfer_s;  // by node; none without out-edges
};

// Nodes folded into operators.
struct Folding {
  std::vector<std::size_t> op_of;  // by node
  Successors successors;           // by operator; every edge goes to a higher number
};

std::optional<std::int64_t> colour_of(const JsonValue& node) {
  const auto colour = node.find("colorClass");
  if (!colour) return std::nullopt;
  return colour->integer(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max());
}

void read_nodes(const std::vector<JsonValue>& items, const NodeIndex& index, const std::string& file, Workload& all) {
  std::vector<NodeName> names;
  std::size_t without_size = 0;
  for (const JsonValue& item : items) {
    const auto name = item.find("name");
    names.push_back({name ? name->text() : "", std::to_string(index.ids()[names.size()])});
    const auto size = item.find("size");
    if (!size) ++without_size;
    all.nodes.push_back({.colour = colour_of(item),
                         .backward = item.at("isBackwardNode").flag(),
                         .on_accelerator = item.at("supportedOnFpga").flag(),
                         .accelerator_s = item.at("fpgaLatency").number(),
                         .cpu_s = item.at("cpuLatency").number(),
                         .bytes = size ? size->bytes() : 0});
  }
  all.names = operator_names(names);
  if (without_size > 0) log::notice(fmt::format("{}: {} nodes have no size; they count 0 bytes", file, without_size));
}

Workload read_workload(const JsonValue& root, const std::string& file) {
  const std::vector<JsonValue> items = root.at("nodes").items();
  if (items.empty()) root.at("nodes").refuse("found no nodes, allowed: at least one");
  const NodeIndex index(items);
  Workload all;
  read_nodes(items, index, file, all);
  all.transfer_s.resize(items.size());
  Successors successors(items.size());
  for (const JsonValue& item : root.at("edges").items()) {
    const NodeEdge edge = read_edge(item, index);
    if (all.nodes[edge.from].backward && !all.nodes[edge.to].backward) {
      item.refuse("an edge from a backward to a forward node, allowed: all others");
    }
    const double seconds = item.at("cost").number();
    std::optional<double>& known = all.transfer_s[edge.from];
    if (!known) known = seconds;
    if (std::abs(*known - seconds) > kCostTolerance) {
      item.at("cost").refuse(fmt::format("found {}, allowed: {} as on the first edge from node {}", seconds, *known,
                                         index.ids()[edge.from]));
    }
    all.edges.push_back(edge);
    successors[edge.from].push_back(edge.to);
  }
  refuse_cycle(root.at("edges"), successors, index);
  return all;
}

// Colour class of each node, numbered by first nodes.
std::vector<std::size_t> classes_of(const std::vector<FileNode>& nodes) {
  std::vector<std::size_t> classes;
  std::unordered_map<std::int64_t, std::size_t> known;
  std::size_t count = 0;
  for (const FileNode& node : nodes) {
    if (!node.colour) {
      classes.push_back(count++);
      continue;
    }
    const auto [entry, fresh] = known.emplace(*node.colour, count);
    if (fresh) ++count;
    classes.push_back(entry->second);
  }
  return classes;
}

// What must come before what, between classes (see the header).
Successors precedence(const Workload& all, const std::vector<std::size_t>& class_of) {
  const std::size_t count = *std::max_element(class_of.begin(), class_of.end()) + 1;
  std::vector<bool> has_forward(count, false);
  for (std::size_t i = 0; i < all.nodes.size(); ++i) {
    if (!all.nodes[i].backward) has_forward[class_of[i]] = true;
  }
  Successors successors(count);
  for (const NodeEdge& edge : all.edges) {
    const std::size_t from = class_of[edge.from], to = class_of[edge.to];
    if (!all.nodes[edge.to].backward) {
      successors[from].push_back(to);
    } else if (all.nodes[edge.from].backward && (!has_forward[from] || !has_forward[to])) {
      successors[to].push_back(from);
    }
  }
  return successors;
}

// The successors of groups of nodes: no edge inside a group, each between two groups once.
Successors contract(const Successors& successors, const std::vector<std::size_t>& group_of) {
  Successors groups(*std::max_element(group_of.begin(), group_of.end()) + 1);
  for (std::size_t from = 0; from < successors.size(); ++from) {
    for (const std::size_t to : successors[from]) {
      if (group_of[from] != group_of[to]) groups[group_of[from]].push_back(group_of[to]);
    }
  }
  for (auto& list : groups) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return groups;
}

Folding fold(const Workload& all) {
  Folding folding{.op_of = classes_of(all.nodes), .successors = {}};
  const Successors classes = precedence(all, folding.op_of);
  std::vector<std::size_t> group_of = components(classes);
  const std::vector<std::size_t> order = depth_first_order(contract(classes, group_of));
  std::vector<std::size_t> position(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) position[order[i]] = i;
  for (std::size_t& group : group_of) group = position[group];
  folding.successors = contract(classes, group_of);
  for (std::size_t& op : folding.op_of) op = group_of[op];
  return folding;
}

SplitModel split_model(const JsonValue& root, const Workload& all, const Folding& folding) {
  SplitModel model;
  model.ops.resize(folding.successors.size(), {.nodes = 0});
  for (std::size_t i = 0; i < all.nodes.size(); ++i) {
    SplitModel::Op& op = model.ops[folding.op_of[i]];
    op.accelerator_s += all.nodes[i].accelerator_s;
    op.cpu_s += all.nodes[i].cpu_s;
    op.bytes += all.nodes[i].bytes;
    op.on_accelerator = op.on_accelerator && all.nodes[i].on_accelerator;
    ++op.nodes;
    if (std::isinf(op.accelerator_s) || std::isinf(op.cpu_s) || op.bytes >= 0x1p63) {
      root.at("nodes").refuse("the sums of a colour class are too large for 64 bits");
    }
  }
  std::vector<std::set<OpId>> readers(all.nodes.size());
  for (const NodeEdge& edge : all.edges) {
    if (folding.op_of[edge.from] == folding.op_of[edge.to]) continue;
    readers[edge.from].insert(static_cast<OpId>(folding.op_of[edge.to]));
  }
  for (std::size_t i = 0; i < all.nodes.size(); ++i) {
    if (readers[i].empty()) continue;
    model.transfers.push_back({.from = static_cast<OpId>(folding.op_of[i]),
                               .to = {readers[i].begin(), readers[i].end()},
                               .seconds = *all.transfer_s[i]});
  }
  model.accelerators = static_cast<int>(root.at("maxFPGAs").integer(0, kMostAccelerators));
  model.cpus = static_cast<int>(root.at("maxCPUs").integer(0, kMostAccelerators));
  if (model.accelerators + model.cpus == 0) {
    root.at("maxFPGAs").refuse("found 0 and maxCPUs 0, allowed: at least one device");
  }
  model.memory_bytes = root.at("maxSizePerFPGA").number();
  return model;
}

std::vector<CostOperator> cost_operators(const Workload& all, const Folding& folding, const SplitModel& model) {
  std::vector<CostOperator> operators(model.ops.size());
  std::vector<const FileNode*> slowest(operators.size());  // names its operator; a forward node where there is one
  for (std::size_t i = 0; i < all.nodes.size(); ++i) {
    const FileNode& node = all.nodes[i];
    CostOperator& op = operators[folding.op_of[i]];
    (node.backward ? op.figures.backward_input_s : op.figures.forward_s) += node.accelerator_s;
    const FileNode*& first = slowest[folding.op_of[i]];
    const bool better = first == nullptr || (first->backward && !node.backward) ||
                        (first->backward == node.backward && first->accelerator_s < node.accelerator_s);
    if (!better) continue;
    first = &node;
    op.name = all.names[i];
  }
  for (std::size_t i = 0; i < operators.size(); ++i) {
    OpFigures& figures = operators[i].figures;
    figures.parameter_bytes = whole_bytes(model.ops[i].bytes);
    if (figures.parameter_bytes > 0) {
      figures.backward_input_s /= 2;
      figures.backward_weight_s = figures.backward_input_s;
    }
    for (const std::size_t next : folding.successors[i]) operators[next].reads.push_back(i);
  }
  return operators;
}

}  // namespace

Graph read_dnn_partitioning(const JsonFile& file) {
  const JsonValue root = file.root();
  const Workload all = read_workload(root, file.name);
  const Folding folding = fold(all);
  SplitModel model = split_model(root, all, folding);
  const std::vector<CostOperator> operators = cost_operators(all, folding, model);
  return build_graph(file.name, operators, {.format = "dnn-partitioning", .extra = std::move(model)});
}

Graph read_dnn_partitioning(std::string_view text, const std::string& file) {
  return read_dnn_partitioning(JsonFile(file, text));
}

}  // namespace millrace::import
