// Prices the collectives of stages.
#include "planner/tensor_split.h"

#include <algorithm>
#include <utility>

#include "program/part_collectives.h"

namespace millrace::planner {

TensorSplit::TensorSplit(const Graph& graph, const cluster::Cluster& cluster, const cost::CostModel& cost,
                         shard::PartRequest request)
    : graph_(graph), splitter_(graph, cluster, std::move(request)), network_(cluster, cost, sim::Contention::none) {}

const std::vector<TensorCollective>& TensorSplit::collectives(const OpList& ops, const StageParts& parts) const {
  const std::lock_guard lock(guard_);
  const auto [known, is_new] = collectives_.try_emplace(&parts);
  if (is_new) {
    // The parts are the splitter's to keep.
    std::vector<ProgramStage> stages(1);
    stages.front().ops = ops;
    stages.front().tensor_parallel = parts.size();
    stages.front().parts = {std::shared_ptr<void>(), &parts};
    known->second = part_collectives(stages);
  }
  return known->second;
}

Seconds TensorSplit::time(const TensorCollective& collective, std::int64_t rows, std::span<const int> devices) const {
  return network_.collective(collective.kind, Bytes(collective.row_bytes * rows), devices);
}

plan::TensorStages::Exchanged TensorSplit::exchanged(const Stage& stage, const StageParts& parts, std::int64_t rows,
                                                     std::span<const int> devices) const {
  Exchanged sum;
  if (rows == 0) return sum;
  for (const TensorCollective& one : collectives(stage.ops, parts)) {
    const Seconds seconds = time(one, rows, devices);
    const Bytes moved = moved_bytes(one.kind, Bytes(one.row_bytes * rows), static_cast<std::int64_t>(devices.size()));
    // What is computed again exchanges again.
    const bool again = !one.backward && std::binary_search(stage.recompute.begin(), stage.recompute.end(), one.op);
    (one.backward ? sum.backward : sum.forward) += seconds;
    if (again) sum.backward += seconds;
    sum.moved += (again ? 2 : 1) * moved;
  }
  return sum;
}

Bytes moved_bytes(InstructionKind kind, Bytes bytes, std::int64_t devices) {
  switch (kind) {
    case InstructionKind::all_reduce:
      return 2 * (devices - 1) * bytes;
    case InstructionKind::all_to_all:
      return Bytes(bytes.value() * (devices - 1) / devices);
    default:
      return (devices - 1) * bytes;
  }
}

}  // namespace millrace::planner
