// Looks for an edge that goes back to an earlier stage, then for what it means: a cycle, or only a wrong order.
#include "plan/stage_order.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"

namespace millrace::plan {
namespace {

struct Edge {
  OpId from = -1;
  OpId to = -1;
};

// One edge for each pair of different stages that have one, by (from stage, to stage).
using StageEdges = std::map<std::pair<int, int>, Edge>;

StageEdges stage_edges(const std::vector<int>& stage_of, const Graph& graph) {
  StageEdges edges;
  for (OpId op = 0; op < graph.size(); ++op) {
    for (const TensorId input : graph.op(op).inputs) {
      const OpId producer = graph.tensor(input).producer;
      if (producer < 0) continue;
      const int from = stage_of[static_cast<std::size_t>(producer)];
      const int to = stage_of[static_cast<std::size_t>(op)];
      if (from != to) edges.try_emplace({from, to}, Edge{producer, op});
    }
  }
  return edges;
}

// Stages from `target` along edges back to `target`, by breadth-first search: a shortest cycle; empty if there is none.
std::vector<int> cycle_through(int target, int stages, const StageEdges& edges) {
  std::vector<int> before(static_cast<std::size_t>(stages), -1);
  std::vector<int> queue{target};
  for (std::size_t next = 0; next < queue.size(); ++next) {
    for (auto edge = edges.lower_bound({queue[next], -1}); edge != edges.end() && edge->first.first == queue[next];
         ++edge) {
      const int to = edge->first.second;
      if (to == target) {
        std::vector<int> cycle{target};
        for (int stage = queue[next]; stage != target; stage = before[static_cast<std::size_t>(stage)]) {
          cycle.push_back(stage);
        }
        cycle.push_back(target);
        std::reverse(cycle.begin(), cycle.end());
        return cycle;
      }
      if (before[static_cast<std::size_t>(to)] >= 0) continue;
      before[static_cast<std::size_t>(to)] = queue[next];
      queue.push_back(to);
    }
  }
  return {};
}

// Whether `stage` itself is not convex: an operator of it depends on another of it through operators outside.
bool left_and_entered_again(int stage, const std::vector<int>& stage_of, const Graph& graph) {
  std::vector<bool> outside_after(static_cast<std::size_t>(graph.size()), false);
  for (OpId op = 0; op < graph.size(); ++op) {
    const bool inside = stage_of[static_cast<std::size_t>(op)] == stage;
    for (const TensorId input : graph.op(op).inputs) {
      const OpId producer = graph.tensor(input).producer;
      if (producer < 0) continue;
      const bool through = outside_after[static_cast<std::size_t>(producer)];
      if (inside && through) return true;
      if (!inside && (through || stage_of[static_cast<std::size_t>(producer)] == stage)) {
        outside_after[static_cast<std::size_t>(op)] = true;
      }
    }
  }
  return false;
}

std::string describe(const std::vector<int>& cycle, const StageEdges& edges, const Graph& graph) {
  std::vector<std::string> steps;
  for (std::size_t i = 0; i + 1 < cycle.size(); ++i) {
    const Edge edge = edges.at({cycle[i], cycle[i + 1]});
    steps.push_back(fmt::format("stage {} → {} ({} → {})", cycle[i], cycle[i + 1], graph.op(edge.from).name,
                                graph.op(edge.to).name));
  }
  return join(steps);
}

}  // namespace

std::optional<Violation> stage_order_violation(const Pipeline& pipeline, const Graph& graph) {
  const int stages = static_cast<int>(pipeline.stages.size());
  std::vector<int> stage_of(static_cast<std::size_t>(graph.size()), -1);
  for (int s = 0; s < stages; ++s) {
    for (const OpId op : pipeline.stages[static_cast<std::size_t>(s)].ops) stage_of[static_cast<std::size_t>(op)] = s;
  }
  const StageEdges edges = stage_edges(stage_of, graph);
  const auto back =
      std::find_if(edges.begin(), edges.end(), [](const auto& edge) { return edge.first.first > edge.first.second; });
  if (back == edges.end()) return std::nullopt;

  for (int s = 0; s < stages; ++s) {
    const std::vector<int> cycle = cycle_through(s, stages, edges);
    if (cycle.empty()) continue;
    const auto open = std::find_if(cycle.begin(), cycle.end(),
                                   [&](int stage) { return left_and_entered_again(stage, stage_of, graph); });
    if (open == cycle.end()) return Violation{Fault::cyclic, "stages in a cycle: " + describe(cycle, edges, graph)};
    return Violation{Fault::not_convex, fmt::format("stage {} is not convex, a path leaves it and comes back: {}",
                                                    *open, describe(cycle, edges, graph))};
  }
  return Violation{
      Fault::stage_order,
      fmt::format("stage {} reads what stage {} computes ({} → {}), so it must be listed after it", back->first.second,
                  back->first.first, graph.op(back->second.from).name, graph.op(back->second.to).name)};
}

}  // namespace millrace::plan
