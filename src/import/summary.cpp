// One pass over the operators in their order.
#include "import/summary.h"

#include <algorithm>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "graph/footprint.h"

namespace millrace::import {
namespace {

struct MachineText {
  static std::string memory(double bytes) {
    return bytes < 0x1p63 ? format(Bytes(static_cast<std::int64_t>(bytes))) : fmt::format("{:g} B", bytes);
  }
  std::string operator()(const std::monostate&) const { return ""; }
  std::string operator()(const SplitModel& model) const {
    return fmt::format("{} accelerators of {}, {} CPU cores", model.accelerators, memory(model.memory_bytes),
                       model.cpus);
  }
  std::string operator()(const TensorParallelModel& model) const {
    return fmt::format("{} devices of {} at {:g} B/s, {} micro-batches", model.devices, memory(model.memory_bytes),
                       model.bytes_per_second, model.batch);
  }
  std::string operator()(const LayerProfile&) const { return ""; }
};

}  // namespace

Summary summarize(const Graph& graph) {
  constexpr std::int64_t kRealBytes = 4;
  Summary summary{.operators = graph.size(),
                  .tensors = static_cast<std::int64_t>(graph.tensors().size()),
                  .parameters = graph.parameter_count()};
  for (const TensorId id : graph.parameters()) {
    summary.parameter_bytes += tensor_bytes(graph.tensor(id), kRealBytes).value();
  }
  std::vector<std::int64_t> depth(static_cast<std::size_t>(graph.size()), 1), at_depth;
  for (OpId id = 0; id < graph.size(); ++id) {
    const Operator& op = graph.op(id);
    const std::int64_t own = depth[static_cast<std::size_t>(id)];
    if (static_cast<std::size_t>(own) > at_depth.size()) at_depth.resize(static_cast<std::size_t>(own), 0);
    ++at_depth[static_cast<std::size_t>(own - 1)];
    for (const TensorId output : op.outputs) {
      summary.edges += static_cast<std::int64_t>(graph.consumers(output).size());
      for (const OpId reader : graph.consumers(output)) {
        std::int64_t& next = depth[static_cast<std::size_t>(reader)];
        next = std::max(next, own + 1);
      }
    }
    if (const OpFigures* figures = graph.figures(id)) {
      summary.forward_s += figures->forward_s;
      summary.backward_s += figures->backward_input_s + figures->backward_weight_s;
    }
    summary.flops += flops(graph, id).forward;
    if (!op.schema->has_kernels && summary.without_kernels.empty()) summary.without_kernels = op.name;
  }
  summary.depth = static_cast<std::int64_t>(at_depth.size());
  summary.width = *std::max_element(at_depth.begin(), at_depth.end());
  if (graph.carried() != nullptr) summary.machine = std::visit(MachineText{}, graph.carried()->extra);
  return summary;
}

}  // namespace millrace::import
