// Exchanges that move bytes, and reductions inside operators.
#include "program/part_collectives.h"

#include <algorithm>

namespace millrace {
namespace {

using Kind = Holding::Kind;

std::int64_t row_bytes(const PartExchange& one) { return element_count(one.dims) * one.element_bytes; }

void add_forward(std::vector<TensorCollective>& list, const PartExchange& one, std::int32_t stage) {
  const auto kind = collective_of(one.from, one.to);
  if (kind) list.push_back({*kind, stage, false, one.behind, row_bytes(one)});
}

// The gradient is complete behind the last reader that the backward comes to, whose weights' gradients are independent
// of what becomes of it. Another exchange computes nothing meanwhile.
bool is_beside_weights(const StageParts& parts, const PartExchange& one) {
  const Graph& graph = *parts.devices.front().graph;
  const auto readers = graph.consumers(graph.op(one.op).outputs[0]);
  if (readers.empty()) return false;
  const Operator& last = graph.op(*std::min_element(readers.begin(), readers.end()));
  return !last.parameters.empty();
}

// What leaves the stage comes back before all of its operators.
void add_backward(std::vector<TensorCollective>& list, const StageParts& parts, const PartExchange& one,
                  std::int32_t stage, OpId behind_all) {
  const auto kind = collective_of(one.gradient_from, one.gradient_to);
  if (!kind || !one.has_gradient) return;
  list.push_back({*kind, stage, true, std::min(one.reader, behind_all), row_bytes(one), is_beside_weights(parts, one)});
}

void add_classes(std::vector<TensorCollective>& list, const SplitOperator& one, std::int32_t stage, int devices) {
  if (one.kind != SplitOperator::Kind::classes) return;
  list.push_back({InstructionKind::all_reduce, stage, false, one.whole, class_bytes(one, devices)});
}

}  // namespace

std::optional<InstructionKind> collective_of(const Holding& from, const Holding& to) {
  if (from == to || from.kind == Kind::whole || to.kind == Kind::term) return std::nullopt;  // local
  if (from.kind == Kind::term) {
    return to.kind == Kind::whole ? InstructionKind::all_reduce : InstructionKind::reduce_scatter;
  }
  return to.kind == Kind::whole ? InstructionKind::all_gather : InstructionKind::all_to_all;
}

std::int64_t class_bytes(const SplitOperator& one, int devices) {
  constexpr std::int64_t kBytes = 32;
  return kBytes * devices * (element_count(one.dims) / one.dims.back());
}

std::vector<TensorCollective> part_collectives(const std::vector<ProgramStage>& stages) {
  std::vector<TensorCollective> all;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (stages[s].parts == nullptr) continue;
    const StageParts& parts = *stages[s].parts;
    const auto stage = static_cast<std::int32_t>(s);
    auto split = parts.split.begin();
    for (const PartExchange& exchange : parts.exchanges) {
      for (; split != parts.split.end() && split->op < exchange.op; ++split) {
        add_classes(all, *split, stage, parts.size());
      }
      add_forward(all, exchange, stage);
    }
    for (; split != parts.split.end(); ++split) add_classes(all, *split, stage, parts.size());
    for (auto exchange = parts.exchanges.rbegin(); exchange != parts.exchanges.rend(); ++exchange) {
      add_backward(all, parts, *exchange, stage, stages[s].ops.back() + 1);
    }
  }
  return all;
}

int shards_of(const ProgramStage& stage, TensorId parameter) {
  if (stage.parts == nullptr) return stage.tensor_parallel;
  return stage.parts->holds_whole(parameter) ? 1 : stage.tensor_parallel;
}

}  // namespace millrace
