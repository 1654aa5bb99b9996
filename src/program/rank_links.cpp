// Looks for producers and consumers among the stages that share all ranks.
#include "program/rank_links.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "graph/stage_graph.h"

namespace millrace {
namespace {

bool is_within(const Program& program, const TensorCollective& collective, const Instruction& at) {
  const bool forward = at.kind == InstructionKind::forward || at.kind == InstructionKind::recompute;
  const bool backward = at.kind == InstructionKind::backward || at.kind == InstructionKind::backward_input;
  if (!(collective.backward ? backward : forward) || collective.stage != at.stage) return false;
  const std::vector<OpId>& dropped = program.stages[static_cast<std::size_t>(at.stage)].recompute;
  return at.kind != InstructionKind::recompute || std::binary_search(dropped.begin(), dropped.end(), collective.op);
}

}  // namespace

RankLinks make_rank_links(const Graph& graph, const Program& program) {
  RankLinks links;
  links.activation_from.resize(program.stages.size());
  links.gradient_from.resize(program.stages.size());
  std::map<std::pair<int, TensorId>, std::int32_t> producers;                     // by pipeline and tensor
  std::map<std::tuple<int, TensorId, std::vector<int>>, std::int32_t> receivers;  // … and ranks: the first consumer
  std::vector<StageGraph> parts;
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    parts.push_back(make_stage_graph(graph, program.stages[s].ops));
    for (const TensorId output : parts[s].outputs) {
      producers[{program.stages[s].ref.pipeline, output}] = static_cast<std::int32_t>(s);
    }
  }
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    const ProgramStage& stage = program.stages[s];
    for (const TensorId input : parts[s].inputs) {
      if (graph.tensor(input).role != Role::activation) continue;
      const std::int32_t producer = producers.at({stage.ref.pipeline, input});
      if (program.stages[static_cast<std::size_t>(producer)].ranks != stage.ranks) {
        const auto [first, is_new] =
            receivers.try_emplace({stage.ref.pipeline, input, stage.ranks}, static_cast<std::int32_t>(s));
        if (!is_new) links.activation_from[s].push_back(first->second);
        continue;
      }
      links.activation_from[s].push_back(producer);
      const std::vector<TensorId>& gradients = parts[s].gradient_inputs;
      if (std::binary_search(gradients.begin(), gradients.end(), input)) {
        links.gradient_from[static_cast<std::size_t>(producer)].push_back(static_cast<std::int32_t>(s));
      }
    }
  }
  return links;
}

std::vector<std::int32_t> collectives_of(const Program& program, const Instruction& at) {
  std::vector<std::int32_t> found;
  for (const TensorCollective& collective : program.collectives) {
    if (!is_within(program, collective, at)) continue;
    found.push_back(static_cast<std::int32_t>(&collective - program.collectives.data()));
  }
  return found;
}

std::int64_t collective_count(const Program& program, const Instruction& at) {
  return std::count_if(program.collectives.begin(), program.collectives.end(),
                       [&](const TensorCollective& collective) { return is_within(program, collective, at); });
}

}  // namespace millrace
