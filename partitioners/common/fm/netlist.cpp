// Counts what plan::AnalyticBytes counts, in the form of tensors and readers.
#include "partitioners/common/fm/netlist.h"

#include <algorithm>
#include <utility>

#include "graph/footprint.h"

namespace millrace::partitioners::fm {
namespace {

constexpr std::int32_t kNone = -1;

// Nets by reader: collects pins in any order, then writes the lists of both sides.
class Pins {
 public:
  Pins(Netlist& netlist, std::size_t nodes) : netlist_(netlist), reads_(nodes), outputs_(nodes) {}

  // `readers`: node and whether its backward reads the tensor; nodes repeat.
  void add(const Net& net, std::vector<std::pair<Node, bool>>& readers) {
    std::sort(readers.begin(), readers.end());
    Net made = net;
    std::size_t distinct = 0;
    for (std::size_t i = 0; i < readers.size(); ++i) {
      if (readers[i].first == net.producer) {
        made.kept = made.kept || readers[i].second;
      } else if (distinct > 0 && readers[distinct - 1].first == readers[i].first) {
        readers[distinct - 1].second = readers[distinct - 1].second || readers[i].second;
      } else {
        readers[distinct++] = readers[i];
      }
    }
    readers.resize(distinct);
    if (readers.empty()) {
      if (made.kept) netlist_.holdings[static_cast<std::size_t>(net.producer)].kept += net.bytes;
      return;
    }
    const auto tensor = static_cast<std::int32_t>(netlist_.nets.size());
    netlist_.nets.push_back(made);
    for (const auto& [reader, saved] : readers) {
      netlist_.readers.add(reader);
      reads_[static_cast<std::size_t>(reader)].push_back({tensor, saved});
    }
    netlist_.readers.close();
    if (net.producer >= 0) outputs_[static_cast<std::size_t>(net.producer)].push_back(tensor);
  }

  void finish() {
    for (const auto& list : reads_) {
      for (const Read& read : list) netlist_.reads.add(read);
      netlist_.reads.close();
    }
    for (const auto& list : outputs_) {
      for (const std::int32_t tensor : list) netlist_.outputs.add(tensor);
      netlist_.outputs.close();
    }
  }

 private:
  Netlist& netlist_;
  std::vector<std::vector<Read>> reads_;
  std::vector<std::vector<std::int32_t>> outputs_;
};

bool contains(const std::vector<int>& positions, std::size_t position) {
  return std::find(positions.begin(), positions.end(), static_cast<int>(position)) != positions.end();
}

// Parameters and buffers: those with several users get a number.
void add_owned(const Graph& graph, plan::TrainingBytes sizes, Netlist& netlist) {
  std::vector<std::int32_t> number(graph.tensors().size(), kNone);
  for (OpId op = 0; op < graph.size(); ++op) {
    std::vector<std::int32_t> ties;
    for (const auto* owned : {&graph.op(op).parameters, &graph.op(op).buffers}) {
      const bool trained = owned == &graph.op(op).parameters;
      for (const TensorId id : *owned) {
        const Tensor& tensor = graph.tensor(id);
        const std::int64_t bytes = tensor_bytes(tensor, sizes.real).value();
        const Holding holding{trained ? parameter_elements(tensor) : 0, bytes, 0, 0};
        if (graph.consumers(id).size() < 2) {
          netlist.holdings[static_cast<std::size_t>(op)].add(holding);
          continue;
        }
        std::int32_t& tie = number[static_cast<std::size_t>(id)];
        if (tie == kNone) {
          tie = static_cast<std::int32_t>(netlist.tied.size());
          netlist.tied.push_back(holding);
        }
        if (std::find(ties.begin(), ties.end(), tie) == ties.end()) ties.push_back(tie);
      }
    }
    for (const std::int32_t tie : ties) netlist.ties.add(tie);
    netlist.ties.close();
  }
}

// What the backward of each operator reads, by tensor; what it keeps besides goes to the operator.
std::vector<std::vector<OpId>> savers(const Graph& graph, plan::TrainingBytes sizes, Netlist& netlist) {
  std::vector<std::vector<OpId>> by_tensor(graph.tensors().size());
  for (OpId id = 0; id < graph.size(); ++id) {
    Holding& holding = netlist.holdings[static_cast<std::size_t>(id)];
    if (const OpFigures* figures = graph.figures(id)) {
      holding.kept += figures->saved_bytes;
      continue;
    }
    const Operator& op = graph.op(id);
    const Saved saved = op.schema->saved(op.attributes, graph.shapes(id));
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      if (contains(saved.inputs, i)) by_tensor[static_cast<std::size_t>(op.inputs[i])].push_back(id);
    }
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      if (contains(saved.outputs, i)) by_tensor[static_cast<std::size_t>(op.outputs[i])].push_back(id);
    }
    holding.kept += saved.extra_reals_per_sample * sizes.real;
    holding.kept_once += saved.extra_reals_per_micro_batch * sizes.real;
  }
  return by_tensor;
}

// Whether a recomputed segment starts from the tensor: one that another layer reads stays (plan/recompute.h).
bool leaves_its_layer(const Graph& graph, TensorId id) {
  const OpId producer = graph.tensor(id).producer;
  const auto readers = graph.consumers(id);
  return std::any_of(readers.begin(), readers.end(), [&](OpId reader) {
    const std::string& layer = graph.op(reader).layer;
    return layer.empty() || layer != graph.op(producer).layer;
  });
}

}  // namespace

Netlist make_netlist(const Graph& graph, plan::TrainingBytes sizes, bool recomputed) {
  Netlist netlist;
  netlist.holdings.resize(static_cast<std::size_t>(graph.size()));
  add_owned(graph, sizes, netlist);
  const auto saved_by =
      recomputed ? std::vector<std::vector<OpId>>(graph.tensors().size()) : savers(graph, sizes, netlist);
  Pins pins(netlist, netlist.nodes());
  std::vector<std::pair<Node, bool>> readers;
  for (TensorId id = 0; id < static_cast<TensorId>(graph.tensors().size()); ++id) {
    const Tensor& tensor = graph.tensor(id);
    if (tensor.role == Role::parameter || tensor.role == Role::buffer) continue;
    const auto& savers_of_it = saved_by[static_cast<std::size_t>(id)];
    const auto saves = [&](OpId op) { return std::binary_search(savers_of_it.begin(), savers_of_it.end(), op); };
    readers.clear();
    for (const OpId reader : graph.consumers(id)) readers.emplace_back(reader, saves(reader));
    const bool kept = tensor.producer >= 0 && (saves(tensor.producer) || tensor.producer == graph.loss() ||
                                               (recomputed && leaves_its_layer(graph, id)));
    pins.add({tensor.producer, tensor_bytes(tensor, sizes.real).value(), kept}, readers);
  }
  pins.finish();
  return netlist;
}

Netlist contract(const Netlist& fine, std::span<const Node> group_of, std::size_t groups) {
  const auto group = [&](Node node) { return group_of[static_cast<std::size_t>(node)]; };
  Netlist coarse;
  coarse.holdings.resize(groups);
  coarse.tied = fine.tied;
  std::vector<std::vector<std::int32_t>> ties(groups);
  for (std::size_t node = 0; node < fine.nodes(); ++node) {
    const auto g = static_cast<std::size_t>(group_of[node]);
    coarse.holdings[g].add(fine.holdings[node]);
    for (const std::int32_t tie : fine.ties[node]) {
      if (std::find(ties[g].begin(), ties[g].end(), tie) == ties[g].end()) ties[g].push_back(tie);
    }
  }
  for (const auto& list : ties) {
    for (const std::int32_t tie : list) coarse.ties.add(tie);
    coarse.ties.close();
  }
  // Whether a reader saves a tensor is written at the reader: gathered by tensor, in the order of its readers.
  std::vector<std::vector<std::pair<Node, bool>>> readers(fine.nets.size());
  for (std::size_t node = 0; node < fine.nodes(); ++node) {
    for (const Read& read : fine.reads[node]) {
      readers[static_cast<std::size_t>(read.tensor)].emplace_back(group_of[node], read.saved);
    }
  }
  Pins pins(coarse, groups);
  for (std::size_t tensor = 0; tensor < fine.nets.size(); ++tensor) {
    Net net = fine.nets[tensor];
    if (net.producer >= 0) net.producer = group(net.producer);
    pins.add(net, readers[tensor]);
  }
  pins.finish();
  return coarse;
}

}  // namespace millrace::partitioners::fm
