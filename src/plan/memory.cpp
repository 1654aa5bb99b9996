// Counts what a stage keeps, and walks through one forward and one backward for what only passes.
#include "plan/memory.h"

#include <algorithm>
#include <vector>

#include "graph/footprint.h"
#include "graph/stage_graph.h"
#include "plan/recompute.h"

namespace millrace::plan {
namespace {

// Highest sum of the bytes of tensors in use, when tensor i is in use from first[i] to last[i].
class Peak {
 public:
  explicit Peak(std::size_t steps) : change_(steps + 1, 0) {}
  void add(std::size_t first, std::size_t last, Bytes bytes) {
    change_[first] += bytes.value();
    change_[last + 1] -= bytes.value();
  }
  Bytes value() const {
    std::int64_t now = 0, peak = 0;
    for (const std::int64_t change : change_) {
      now += change;
      peak = std::max(peak, now);
    }
    return Bytes(peak);
  }

 private:
  std::vector<std::int64_t> change_;
};

// Bytes per row of passing values: activations that backward does not read live until their last reader in the
// stage; the gradient of a tensor lives from its last reader's backward to its producer's.
Bytes passing_bytes(const StageGraph& stage, std::span<const TensorId> kept, std::int64_t real_bytes) {
  const Graph& graph = *stage.graph;
  Peak forward(stage.ops.size()), backward(stage.ops.size());
  for (std::size_t i = 0; i < stage.ops.size(); ++i) {
    for (const TensorId output : graph.op(stage.ops[i]).outputs) {
      const Bytes bytes = tensor_bytes(graph.tensor(output), real_bytes);
      std::size_t last = i;
      for (const OpId reader : graph.consumers(output)) {
        const auto found = std::lower_bound(stage.ops.begin(), stage.ops.end(), reader);
        if (found != stage.ops.end() && *found == reader) last = static_cast<std::size_t>(found - stage.ops.begin());
      }
      if (!std::binary_search(kept.begin(), kept.end(), output)) forward.add(i, last, bytes);
      backward.add(i, last, bytes);
    }
  }
  return std::max(forward.value(), backward.value());
}

Bytes sum(const Graph& graph, std::span<const TensorId> tensors, std::int64_t real_bytes) {
  Bytes bytes;
  for (const TensorId id : tensors) bytes += tensor_bytes(graph.tensor(id), real_bytes);
  return bytes;
}

}  // namespace

StageFootprint AnalyticBytes::footprint(std::span<const OpId> ops, std::int64_t rows,
                                        std::span<const OpId> recompute) const {
  const Graph& graph = *graph_;
  const StageGraph stage = make_stage_graph(graph, ops);
  const KeptActivations kept = kept_activations(stage, recompute, rows, sizes_.real);

  std::int64_t elements = 0;
  for (const TensorId id : stage.parameters) elements += parameter_elements(graph.tensor(id));
  const Bytes parameters = sum(graph, stage.parameters, sizes_.real);
  const Bytes buffers = sum(graph, stage.buffers, sizes_.real);

  StageFootprint bytes;
  bytes.weights = parameters + buffers;
  bytes.gradients = parameters + buffers;  // the statistics of batch norm are reduced like gradients
  bytes.optimizer = Bytes(elements * sizes_.optimizer_per_parameter);
  bytes.per_slot =
      rows * (sum(graph, kept.tensors, sizes_.real) + kept.beside_per_sample) + kept.beside_per_micro_batch;
  bytes.workspace = rows * passing_bytes(stage, kept.tensors, sizes_.real) + kept.recomputed;
  bytes.messages = message_bytes(stage, rows);
  return bytes;
}

// A receive is posted for each tensor of the window and the one in use; a send has its own copy.
Bytes AnalyticBytes::message_bytes(const StageGraph& stage, std::int64_t rows) const {
  const Bytes received = sum(*stage.graph, stage.gradient_inputs, sizes_.real);  // their gradients go back
  const Bytes sent = sum(*stage.graph, stage.gradient_outputs, sizes_.real);
  return rows * ((receive_window_ + 1) * (received + sent) + received + sent);
}

// Tensors at the border are whole on every device.
StageFootprint AnalyticBytes::part_footprint(const std::shared_ptr<const StageParts>& parts, std::size_t shard,
                                             std::span<const OpId> ops, std::int64_t rows,
                                             std::span<const OpId> recompute) const {
  const StagePart& part = parts->devices[shard];
  const AnalyticBytes of_part(*part.graph, sizes_, receive_window_);
  StageFootprint bytes = of_part.footprint(part.stage.ops, rows, parts->recomputed(recompute));
  bytes.messages = message_bytes(make_stage_graph(*graph_, ops), rows);
  return bytes;
}

StageMemory stage_memory(const StageFootprint& footprint, std::int64_t live) {
  return {footprint.weights,         footprint.gradients, footprint.optimizer,
          live * footprint.per_slot, footprint.workspace, footprint.messages};
}

}  // namespace millrace::plan
