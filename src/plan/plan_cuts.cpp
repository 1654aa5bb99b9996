// Compares pipelines and finds what crosses between their stages.
#include "plan/plan_cuts.h"

#include <algorithm>
#include <utility>

namespace millrace::plan {
namespace {

bool same_stages(const Pipeline& a, const Pipeline& b) {
  return std::equal(a.stages.begin(), a.stages.end(), b.stages.begin(), b.stages.end(),
                    [](const Stage& x, const Stage& y) { return x.ops == y.ops; });
}

std::vector<Crossing> crossings(const Pipeline& pipeline, const Graph& graph) {
  std::vector<int> stage_of(static_cast<std::size_t>(graph.size()), -1);
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    for (const OpId op : pipeline.stages[s].ops) stage_of[static_cast<std::size_t>(op)] = static_cast<int>(s);
  }
  std::vector<Crossing> found;
  std::vector<int> readers;
  for (TensorId id = 0; id < static_cast<TensorId>(graph.tensors().size()); ++id) {
    const OpId producer = graph.tensor(id).producer;
    if (producer < 0) continue;
    const int from = stage_of[static_cast<std::size_t>(producer)];
    readers.clear();
    for (const OpId reader : graph.consumers(id)) {
      const int to = stage_of[static_cast<std::size_t>(reader)];
      if (to != from) readers.push_back(to);
    }
    std::sort(readers.begin(), readers.end());
    readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
    for (const int to : readers) found.push_back({id, from, to});
  }
  return found;
}

// Stages feed later ones only.
std::vector<int> depths(std::size_t stages, const std::vector<Crossing>& crossings) {
  std::vector<std::vector<int>> readers(stages);
  for (const Crossing& crossing : crossings) readers[static_cast<std::size_t>(crossing.from)].push_back(crossing.to);
  std::vector<int> depth(stages, 0);
  for (std::size_t s = stages; s-- > 0;) {
    for (const int to : readers[s]) depth[s] = std::max(depth[s], depth[static_cast<std::size_t>(to)] + 1);
  }
  return depth;
}

}  // namespace

PlanCuts plan_cuts(const Plan& plan, const Graph& graph) {
  PlanCuts all;
  for (int p = 0; p < static_cast<int>(plan.pipelines.size()); ++p) {
    const Pipeline& pipeline = plan.pipelines[static_cast<std::size_t>(p)];
    const auto known = std::find_if(all.cuts.begin(), all.cuts.end(), [&](const Cut& cut) {
      return same_stages(plan.pipelines[static_cast<std::size_t>(cut.pipeline)], pipeline);
    });
    all.of_pipeline.push_back(static_cast<int>(known - all.cuts.begin()));
    if (known != all.cuts.end()) continue;
    Cut cut{p, crossings(pipeline, graph), {}};
    cut.depth_from_end = depths(pipeline.stages.size(), cut.crossings);
    all.cuts.push_back(std::move(cut));
  }
  return all;
}

}  // namespace millrace::plan
