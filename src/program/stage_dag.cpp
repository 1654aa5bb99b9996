// Collects the edges between stages from the graph's tensors and orders them from the end.
#include "program/stage_dag.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/errors.h"

namespace millrace {
namespace {

std::vector<std::int32_t> stage_of_ops(const Graph& graph, const Pipeline& pipeline, std::size_t number) {
  std::vector<std::int32_t> stage_of(static_cast<std::size_t>(graph.size()), -1);
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    for (const OpId op : pipeline.stages[s].ops) {
      std::int32_t& stage = stage_of.at(static_cast<std::size_t>(op));
      if (stage >= 0) {
        throw InvalidInput(fmt::format("operator {} is in stages {} and {} of pipeline {}; each belongs to exactly one",
                                       graph.op(op).name, stage, s, number));
      }
      stage = static_cast<std::int32_t>(s);
    }
  }
  for (std::size_t op = 0; op < stage_of.size(); ++op) {
    if (stage_of[op] < 0) {
      throw InvalidInput(
          fmt::format("operator {} is in no stage of pipeline {}", graph.op(static_cast<OpId>(op)).name, number));
    }
  }
  return stage_of;
}

void sort_unique(std::vector<std::int32_t>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

// Kahn from the stages that feed no other: a stage is done when all that it feeds are.
void measure_depths(StageDag& dag) {
  const std::size_t count = dag.successors.size();
  dag.depth_from_end.assign(count, 0);
  std::vector<std::size_t> open(count);
  std::vector<std::size_t> done;
  for (std::size_t s = 0; s < count; ++s) {
    open[s] = dag.successors[s].size();
    if (open[s] == 0) done.push_back(s);
  }
  for (std::size_t next = 0; next < done.size(); ++next) {
    for (const std::int32_t before : dag.predecessors[done[next]]) {
      const auto b = static_cast<std::size_t>(before);
      dag.depth_from_end[b] = std::max(dag.depth_from_end[b], dag.depth_from_end[done[next]] + 1);
      if (--open[b] == 0) done.push_back(b);
    }
  }
  if (done.size() != count) throw InvalidInput("the plan's stages feed each other in a circle: stages must be acyclic");
}

}  // namespace

StageDag make_stage_dag(const Graph& graph, const Plan& plan) {
  StageDag dag;
  for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
    const Pipeline& pipeline = plan.pipelines[p];
    const std::vector<std::int32_t> stage_of = stage_of_ops(graph, pipeline, p);
    const auto first = static_cast<std::int32_t>(dag.successors.size());
    dag.successors.resize(dag.successors.size() + pipeline.stages.size());
    dag.predecessors.resize(dag.successors.size());
    for (std::size_t op = 0; op < stage_of.size(); ++op) {
      const std::int32_t to = first + stage_of[op];
      for (const TensorId input : graph.op(static_cast<OpId>(op)).inputs) {
        const OpId producer = graph.tensor(input).producer;
        if (producer < 0) continue;
        const std::int32_t from = first + stage_of[static_cast<std::size_t>(producer)];
        if (from == to) continue;
        dag.successors[static_cast<std::size_t>(from)].push_back(to);
        dag.predecessors[static_cast<std::size_t>(to)].push_back(from);
      }
    }
  }
  for (auto& list : dag.successors) sort_unique(list);
  for (auto& list : dag.predecessors) sort_unique(list);
  measure_depths(dag);
  return dag;
}

}  // namespace millrace
