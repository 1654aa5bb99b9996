// Goes over each segment from its last operator to its first, asking for what the ones behind it need.
#include "kernels/recompute_plan.h"

#include <algorithm>
#include <map>

#include "graph/recompute_segments.h"

namespace millrace::kernels {
namespace {

constexpr int kNotRecomputed = -1;

class Planner {
 public:
  Planner(const StageGraph& stage, const GradientFlow& flow, std::span<const OpId> recompute,
          const std::vector<bool>& drops_extra)
      : stage_(stage), flow_(flow), drops_extra_(drops_extra), segments_(stage.ops.size(), kNotRecomputed) {
    const std::vector<int> numbers = recompute_segments(*stage.graph, recompute);
    for (std::size_t i = 0; i < recompute.size(); ++i) {
      const std::size_t position = position_of(recompute[i]);
      segments_[position] = numbers[i];
      members_[numbers[i]].push_back(position);
    }
  }

  RecomputePlan plan() {
    plan_.before.resize(stage_.ops.size());
    plan_.drops_extra.resize(stage_.ops.size());
    find_kept();
    for (const auto& [number, positions] : members_) plan_segment(positions);
    const auto last =
        std::find_if(plan_.before.rbegin(), plan_.before.rend(), [](const auto& l) { return !l.empty(); });
    if (last != plan_.before.rend()) plan_.first.swap(*last);
    return std::move(plan_);
  }

 private:
  std::size_t position_of(OpId op) const {
    return static_cast<std::size_t>(std::lower_bound(stage_.ops.begin(), stage_.ops.end(), op) - stage_.ops.begin());
  }
  bool inside(OpId op) const { return op >= 0 && std::binary_search(stage_.ops.begin(), stage_.ops.end(), op); }
  const Operator& op(std::size_t position) const { return stage_.graph->op(stage_.ops[position]); }

  std::vector<TensorId> saved(std::size_t position) const {
    std::vector<TensorId> tensors;
    if (!flow_.active[position]) return tensors;
    const Operator& at = op(position);
    const Saved names = at.schema->saved(at.attributes, stage_.graph->shapes(stage_.ops[position]));
    for (const int k : names.inputs) tensors.push_back(at.inputs[static_cast<std::size_t>(k)]);
    for (const int k : names.outputs) tensors.push_back(at.outputs[static_cast<std::size_t>(k)]);
    return tensors;
  }

  // The border, what backward reads of operators that do not run again, and what a segment reads of others.
  void find_kept() {
    kept_.insert(stage_.inputs.begin(), stage_.inputs.end());
    kept_.insert(stage_.outputs.begin(), stage_.outputs.end());
    for (std::size_t i = 0; i < stage_.ops.size(); ++i) {
      if (segments_[i] == kNotRecomputed) {
        const std::vector<TensorId> read = saved(i);
        kept_.insert(read.begin(), read.end());
        continue;
      }
      for (const TensorId input : op(i).inputs) {
        const OpId producer = stage_.graph->tensor(input).producer;
        if (inside(producer) && segments_[position_of(producer)] != segments_[i]) kept_.insert(input);
      }
    }
  }

  void plan_segment(const std::vector<std::size_t>& ascending) {
    std::unordered_set<TensorId> needed;
    std::vector<std::size_t> again;
    std::size_t first_backward = stage_.ops.size();  // none
    for (auto i = ascending.rbegin(); i != ascending.rend(); ++i) {
      const std::size_t position = *i;
      for (const TensorId tensor : saved(position)) {
        if (!kept_.contains(tensor)) needed.insert(tensor);
      }
      if (first_backward == stage_.ops.size() && flow_.active[position]) first_backward = position;
      const bool extra = drops_extra_[position] && flow_.active[position];
      const auto& outputs = op(position).outputs;
      const bool wanted = std::any_of(outputs.begin(), outputs.end(), [&](TensorId t) { return needed.contains(t); });
      if (!extra && !wanted) continue;
      plan_.drops_extra[position] = extra;
      again.insert(again.begin(), position);
      for (const TensorId output : outputs) {
        if (!kept_.contains(output)) plan_.dropped.insert(output);
      }
      for (const TensorId input : op(position).inputs) {
        if (!kept_.contains(input)) needed.insert(input);
      }
    }
    if (!again.empty()) plan_.before[first_backward] = std::move(again);
  }

  const StageGraph& stage_;
  const GradientFlow& flow_;
  const std::vector<bool>& drops_extra_;
  std::vector<int> segments_;                        // by position
  std::map<int, std::vector<std::size_t>> members_;  // by segment: positions, ascending
  std::unordered_set<TensorId> kept_;
  RecomputePlan plan_;
};

}  // namespace

RecomputePlan plan_recompute(const StageGraph& stage, const GradientFlow& flow, std::span<const OpId> recompute,
                             const std::vector<bool>& drops_extra) {
  return Planner(stage, flow, recompute, drops_extra).plan();
}

}  // namespace millrace::kernels
