// Runs from the last item, so that the stages behind, hence the live micro-batches, are known.
#include "partitioners/common/pipeline_dp.h"

#include <algorithm>
#include <limits>

namespace millrace::partitioners {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

}  // namespace

std::int64_t PipelineDp::depth(const PipelineModel& model, std::optional<int> stages) {
  if (stages) return *stages;
  if (!model.memory_limited()) return 1;
  const std::int64_t most = std::min<std::int64_t>(model.devices(), static_cast<std::int64_t>(model.items()));
  // More stages behind than the schedule can keep micro-batches alive for make no difference.
  std::int64_t needed = 1;
  while (needed < most && model.traits().live(model.micro_batches(), needed + 1) >
                              model.traits().live(model.micro_batches(), needed)) {
    ++needed;
  }
  return needed;
}

PipelineDp::PipelineDp(const PipelineModel& model, std::optional<int> stages, double margin)
    : model_(&model),
      stages_(stages),
      margin_(margin),
      depth_(depth(model, stages)),
      states_(static_cast<std::size_t>(depth_) * static_cast<std::size_t>(model.devices() + 1) * model.items()) {}

std::optional<PipelineCut> PipelineDp::one_stage() const {
  const int devices = model_->devices();
  const std::size_t items = model_->items();
  if (stages_.value_or(1) != 1) return std::nullopt;
  if (!model_->fits(0, devices, 0, items, model_->traits().live(model_->micro_batches(), 1), margin_)) {
    return std::nullopt;
  }
  const StageCost cost = model_->cost(0, devices, 0, items);
  return PipelineCut{{items}, {devices}, cost.total() + model_->reduction(0, devices, 0, items), cost.total(),
                     cost.forward, cost.backward};
}

std::optional<PipelineCut> PipelineDp::solve(double bottleneck, Deadline deadline) {
  std::fill(states_.begin(), states_.end(), State{kNever, 0, 0, 0, 0});
  for (int devices = 1; devices <= model_->devices(); ++devices) {
    const bool whole = devices == model_->devices();
    for (int replicas = 1; replicas <= devices; ++replicas) {
      if (std::chrono::steady_clock::now() > deadline) return std::nullopt;
      // All devices together hold all items; fewer leave an item for those before them.
      const std::size_t first = whole ? 0 : 1;
      const std::size_t behind_last = whole ? 1 : model_->items();
      for (std::size_t begin = first; begin < behind_last; ++begin) extend(devices, replicas, begin, bottleneck);
    }
  }
  std::int64_t best = stages_ ? *stages_ : 1;
  for (std::int64_t depth = 1; !stages_ && depth <= depth_; ++depth) {
    if (state(depth, model_->devices(), 0).value() < state(best, model_->devices(), 0).value()) best = depth;
  }
  if (state(best, model_->devices(), 0).value() == kNever) return std::nullopt;
  return trace(best);
}

void PipelineDp::extend(int devices, int replicas, std::size_t begin, double bottleneck) {
  const int first = model_->devices() - devices;
  if (devices == replicas) return consider(devices, replicas, begin, model_->items(), bottleneck);
  for (std::size_t end = begin + 1; end < model_->items(); ++end) {
    if (model_->compute(first, replicas, begin, end) > bottleneck) break;
    consider(devices, replicas, begin, end, bottleneck);
  }
}

void PipelineDp::consider(int devices, int replicas, std::size_t begin, std::size_t end, double bottleneck) {
  const int first = model_->devices() - devices;
  const StageCost cost = model_->cost(first, replicas, begin, end);
  if (cost.total() > bottleneck) return;
  if (devices == replicas) {
    return offer(1, devices, replicas, begin, end, cost, State{}, 0);
  }
  const std::int64_t deepest = stages_ ? depth_ - 1 : depth_;
  for (std::int64_t behind = 1; behind <= deepest; ++behind) {
    const State& suffix = state(behind, devices - replicas, end);
    if (suffix.sum == kNever) continue;
    offer(std::min(behind + 1, depth_), devices, replicas, begin, end, cost, suffix, behind);
  }
}

void PipelineDp::offer(std::int64_t depth, int devices, int replicas, std::size_t begin, std::size_t end,
                       const StageCost& cost, const State& behind, std::int64_t behind_depth) {
  State& best = state(depth, devices, begin);
  const double sum = behind.sum + cost.total();
  if (sum >= best.value()) return;
  const int first = model_->devices() - devices;
  // The stages behind end their last backward earlier by this stage's backward (METHODS 5, level 1).
  const double tail =
      std::max({0.0, model_->reduction(first, replicas, begin, end), behind.tail - cost.backward});
  if (sum + tail >= best.value()) return;
  const bool limited = model_->memory_limited();
  if (limited && !model_->fits(first, replicas, begin, end, model_->traits().live(model_->micro_batches(), depth),
                               margin_)) {
    return;
  }
  best = {sum, tail, static_cast<std::int32_t>(end), static_cast<std::int16_t>(replicas),
          static_cast<std::int16_t>(behind_depth)};
}

PipelineCut PipelineDp::trace(std::int64_t depth) {
  PipelineCut cut;
  int devices = model_->devices();
  std::size_t begin = 0;
  cut.sum = state(depth, devices, begin).value();
  while (devices > 0) {
    const State& here = state(depth, devices, begin);
    const auto end = static_cast<std::size_t>(here.end);
    const StageCost cost = model_->cost(model_->devices() - devices, here.replicas, begin, end);
    cut.slowest = std::max(cut.slowest, cost.total());
    cut.slowest_forward = std::max(cut.slowest_forward, cost.forward);
    cut.slowest_backward = std::max(cut.slowest_backward, cost.backward);
    cut.ends.push_back(end);
    cut.replicas.push_back(here.replicas);
    devices -= here.replicas;
    begin = end;
    depth = here.depth;
  }
  return cut;
}

}  // namespace millrace::partitioners
