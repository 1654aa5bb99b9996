// Exchanges that move bytes, and reductions inside operators.
#include "program/part_collectives.h"

#include <algorithm>
#include <optional>

namespace millrace {
namespace {

using Kind = Holding::Kind;

std::optional<InstructionKind> collective_of(const Holding& from, const Holding& to) {
  if (from == to || from.kind == Kind::whole || to.kind == Kind::term) return std::nullopt;  // local
  if (from.kind == Kind::term) {
    return to.kind == Kind::whole ? InstructionKind::all_reduce : InstructionKind::reduce_scatter;
  }
  return to.kind == Kind::whole ? InstructionKind::all_gather : InstructionKind::all_to_all;
}

void add_exchange(std::vector<TensorCollective>& list, const PartExchange& one, std::int32_t stage, bool backward) {
  const auto kind = backward ? collective_of(one.gradient_from, one.gradient_to) : collective_of(one.from, one.to);
  if (!kind || (backward && !one.has_gradient)) return;
  list.push_back(
      {*kind, stage, backward, backward ? one.reader : one.behind, element_count(one.dims) * one.element_bytes});
}

// Of each row of logits: four doubles from each part.
void add_classes(std::vector<TensorCollective>& list, const SplitOperator& one, std::int32_t stage, int devices) {
  if (one.kind != SplitOperator::Kind::classes) return;
  constexpr std::int64_t kBytes = 32;
  const std::int64_t positions = element_count(one.dims) / one.dims.back();
  list.push_back({InstructionKind::all_reduce, stage, false, one.whole, kBytes * devices * positions});
}

}  // namespace

std::vector<TensorCollective> part_collectives(const Graph& graph, const std::vector<ProgramStage>& stages) {
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
      add_exchange(all, exchange, stage, false);
    }
    for (; split != parts.split.end(); ++split) add_classes(all, *split, stage, parts.size());
    for (auto exchange = parts.exchanges.rbegin(); exchange != parts.exchanges.rend(); ++exchange) {
      add_exchange(all, *exchange, stage, true);
      // What leaves the stage comes back before all of its operators.
      if (!all.empty() && all.back().op >= graph.size()) all.back().op = stages[s].ops.back();
    }
  }
  return all;
}

int shards_of(const ProgramStage& stage, TensorId parameter) {
  if (stage.parts == nullptr) return stage.tensor_parallel;
  return stage.parts->holds_whole(parameter) ? 1 : stage.tensor_parallel;
}

}  // namespace millrace
