// Collects the owners of every part, stage by stage, then sums what has the same owners.
#include "plan/part_reductions.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/distinct.h"
#include "base/index.h"
#include "graph/footprint.h"
#include "graph/stage_graph.h"
#include "plan/tensor_stages.h"

namespace millrace::plan {
namespace {

struct Owned {
  std::vector<int> devices;
  std::vector<StageRef> stages;
  std::int64_t bytes = 0;
};

std::int64_t part_bytes(const Tensor& tensor, const Holding& holding, std::size_t place, std::int64_t real_bytes) {
  const std::int64_t all = tensor_bytes(tensor, real_bytes).value();
  if (holding.kind != Holding::Kind::part) return all;
  return all / holding.borders.back() * (holding.borders[place + 1] - holding.borders[place]);
}

}  // namespace

std::vector<Reduction> part_reductions(const Plan& plan, std::span<const std::shared_ptr<const StageParts>> parts,
                                       const Graph& graph, std::int64_t real_bytes) {
  std::map<std::pair<TensorId, std::size_t>, Owned> owned;  // by tensor and place; whole ones are at place 0
  std::size_t flat = 0;
  for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
    for (std::size_t s = 0; s < plan.pipelines[p].stages.size(); ++s, ++flat) {
      const Stage& stage = plan.pipelines[p].stages[s];
      const StageParts* split = parts[flat].get();
      const StageGraph whole = make_stage_graph(graph, stage.ops);
      const StageRef ref{static_cast<int>(p), static_cast<int>(s)};
      for (const auto* list : {&whole.parameters, &whole.buffers}) {
        for (const TensorId id : *list) {
          const bool cut = split != nullptr && !split->holds_whole(id);
          for (std::size_t d = 0; d < stage.devices.size(); ++d) {
            const std::size_t place = cut ? d % at(stage.tensor_parallel) : 0;
            Owned& one = owned[{id, place}];
            one.devices.push_back(stage.devices[d]);
            if (one.stages.empty() || one.stages.back() != ref) one.stages.push_back(ref);
            one.bytes = part_bytes(graph.tensor(id), cut ? split->parameters.at(id) : Holding{}, place, real_bytes);
          }
        }
      }
    }
  }
  std::map<std::vector<int>, Reduction> by_owners;
  for (auto& [key, one] : owned) {
    sort_distinct(one.devices);
    if (one.devices.size() < 2) continue;
    Reduction& reduction = by_owners[one.devices];
    reduction.bytes += Bytes(one.bytes);
    for (const StageRef& ref : one.stages) {
      if (std::find(reduction.stages.begin(), reduction.stages.end(), ref) == reduction.stages.end()) {
        reduction.stages.push_back(ref);
      }
    }
  }
  std::vector<Reduction> reductions;
  for (auto& [devices, reduction] : by_owners) {
    reduction.devices = devices;
    reductions.push_back(std::move(reduction));
  }
  return reductions;
}

bool splits_operators(const Plan& plan) {
  return std::any_of(plan.pipelines.begin(), plan.pipelines.end(), [](const Pipeline& pipeline) {
    return std::any_of(pipeline.stages.begin(), pipeline.stages.end(),
                       [](const Stage& stage) { return stage.tensor_parallel > 1; });
  });
}

}  // namespace millrace::plan
