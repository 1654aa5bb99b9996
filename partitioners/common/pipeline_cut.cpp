// Adds up stages from the last to the first.
#include "partitioners/common/pipeline_cut.h"

namespace millrace::partitioners {

Score score(plan::Objective objective, const CutFigures& figures, const PipelineModel& model) {
  const double time = figures.iteration_time(model.traits(), model.micro_batches());
  switch (objective) {
    case plan::Objective::bottleneck:
      return {figures.slowest, time};
    case plan::Objective::communication:
      return {figures.injected, time};
    default:
      return {time, figures.injected};
  }
}

Variant variant(const PipelineModel& model, int group, std::size_t begin, std::size_t end, std::int64_t from_end) {
  const plan::Recompute recompute = model.problem().recompute;
  const std::int64_t live = model.traits().needed(model.micro_batches(), from_end, model.most_stages());
  // A last stage with one live micro-batch runs each backward right after its forward: nothing is gained there.
  const bool at_once = from_end == 1 && model.traits().live(model.micro_batches(), 1, model.most_stages()) == 1;
  const bool may_keep = recompute != plan::Recompute::all || at_once;
  if (may_keep && (!model.memory_limited() || model.most_live(group, begin, end, false) >= live)) return Variant::kept;
  if (recompute == plan::Recompute::none) return Variant::none;
  const bool fits = !model.memory_limited() || model.most_live(group, begin, end, true) >= live;
  return fits ? Variant::recomputed : Variant::none;
}

bool assess(PipelineModel& model, PipelineCut& cut) {
  cut.figures = {};
  Counts behind(model.deal().queues(), 0);
  for (std::size_t s = cut.stages.size(); s-- > 0;) {
    CutStage& stage = cut.stages[s];
    const std::size_t begin = s > 0 ? cut.stages[s - 1].end : 0;
    const int group = model.group(behind, stage.taken);
    const auto from_end = static_cast<std::int64_t>(cut.stages.size() - s);
    const Variant chosen = variant(model, group, begin, stage.end, from_end);
    if (chosen == Variant::none) return false;
    stage.recompute = chosen == Variant::recomputed;
    cut.figures = cut.figures.before(model.cost(group, begin, stage.end, stage.recompute),
                                     model.reduction(group, begin, stage.end), model.injected(group, begin, stage.end));
    for (std::size_t q = 0; q < behind.size(); ++q) behind[q] += stage.taken[q];
  }
  return true;
}

}  // namespace millrace::partitioners
