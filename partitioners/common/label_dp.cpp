// Runs from the last item, so that the stages behind, hence the live micro-batches, are known.
#include "partitioners/common/label_dp.h"

#include <algorithm>
#include <numeric>

namespace millrace::partitioners {

double LabelDp::states(const DeviceDeal& deal) {
  double states = 1;
  for (const int count : deal.counts()) states *= count + 1;
  return states;
}

// With t devices in all and about work / t each, a stage on r of them can be r / t of the items long.
double LabelDp::stages(const DeviceDeal& deal, std::size_t items) {
  double devices = 0, pairs = 1;
  for (const int count : deal.counts()) {
    devices += count;
    pairs *= 0.5 * (count + 1) * (count + 2);
  }
  return 0.5 * static_cast<double>(items) * static_cast<double>(items) * pairs / std::max(1.0, 0.5 * devices);
}

LabelDp::LabelDp(PipelineModel& model, plan::Objective objective, Limits limits)
    : model_(&model),
      objective_(objective),
      limits_(limits),
      items_(model.items()),
      steady_(static_cast<double>(model.micro_batches() - 1)) {
  const Counts all = model.deal().counts();
  Counts used(all.size(), 0);
  for (;;) {  // the last queue fastest: every count behind a stage comes before the counts with it
    used_.push_back(used);
    std::size_t q = all.size();
    while (q > 0 && used[q - 1] == all[q - 1]) used[--q] = 0;
    if (q == 0) break;
    ++used[q - 1];
  }
  for (const Counts& counts : used_) {
    left_.push_back(model.devices() - std::accumulate(counts.begin(), counts.end(), 0));
  }
  lists_.resize(used_.size() * (items_ + 1));
  labels_.emplace_back();
  labels_[0].begin = static_cast<std::uint32_t>(items_);
  list(0, items_).push_back(0);
  least_slowest_ = model.least_time(all, items_);
  const auto live = [&](std::int32_t stages) {
    return model.traits().needed(model.micro_batches(), stages, model.most_stages());
  };
  while (model.memory_limited() && deepest_ < model.devices() && live(deepest_ + 1) > live(deepest_)) ++deepest_;
}

std::optional<PipelineCut> LabelDp::best(Score bound) {
  bound_ = bound;
  const double scale = objective_ == plan::Objective::communication ? 0.0 : bound.first;
  allowed_ = limits_.slack > 0 && scale < std::numeric_limits<double>::infinity()
                 ? limits_.slack * scale / (2.0 * model_->devices())
                 : 0.0;
  for (std::size_t state = 1; state < used_.size() && !stopped_; ++state) {
    const std::vector<Move> before = moves(state);
    Counts left = model_->deal().counts();
    for (std::size_t q = 0; q < left.size(); ++q) left[q] -= used_[state][q];
    const bool all = state + 1 == used_.size();
    for (std::size_t begin = all ? 0 : 1; begin < (all ? 1 : items_) && !stopped_; ++begin) {
      visit(state, begin, before, left);
    }
  }
  if (best_ < 0) return std::nullopt;
  return trace(best_);
}

std::vector<LabelDp::Move> LabelDp::moves(std::size_t state) {
  std::vector<Move> all;
  for (std::size_t from = 0; from < state; ++from) {
    Counts taken = used_[state];
    bool part = true;
    for (std::size_t q = 0; q < taken.size(); ++q) {
      taken[q] -= used_[from][q];
      part = part && taken[q] >= 0;
    }
    if (part) all.push_back({from, model_->group(used_[from], taken)});
  }
  return all;
}

void LabelDp::visit(std::size_t state, std::size_t begin, const std::vector<Move>& moves, const Counts& left) {
  const double rest = begin > 0 ? model_->least_time(left, begin) : 0.0;
  for (const Move& move : moves) {
    if (!stopped_) extend(state, begin, move, rest);
  }
  trim(list(state, begin), rest);
}

void LabelDp::extend(std::size_t state, std::size_t begin, const Move& move, double rest) {
  if (move.from == 0) return stage(state, begin, move.from, items_, move.group, rest);
  for (std::size_t end = begin + 1; end < items_ && !stopped_; ++end) {
    if (list(move.from, end).empty()) continue;
    // A longer stage takes longer.
    if (model_->cost(move.group, begin, end).total() > longest_stage(rest)) return;
    stage(state, begin, move.from, end, move.group, rest);
  }
}

double LabelDp::longest_stage(double rest) const {
  switch (objective_) {
    case plan::Objective::bottleneck:
      return bound_.first;
    case plan::Objective::communication:
      return std::numeric_limits<double>::infinity();
    default:
      return (bound_.first - rest) / (steady_ + 1);
  }
}

void LabelDp::stage(std::size_t state, std::size_t begin, std::size_t from, std::size_t end, int group, double rest) {
  const double reduction = model_->reduction(group, begin, end);
  const double injected = model_->injected(group, begin, end);
  std::int64_t known_depth = -1;
  Variant variant = Variant::none;
  StageCost cost;
  const List& behind = list(from, end);
  for (const std::int32_t parent : behind) {
    if (stop()) return;
    const std::int32_t depth = labels_[static_cast<std::size_t>(parent)].depth + 1;
    if (limits_.stages) {
      const int to_come = *limits_.stages - depth;
      const bool ends = begin == 0 ? to_come == 0 : to_come > 0;
      if (!ends || static_cast<std::size_t>(to_come) > begin || to_come > left_[state]) continue;
    }
    const auto from_end = static_cast<std::int64_t>(depth);
    if (known_depth != from_end) {
      known_depth = from_end;
      variant = partitioners::variant(*model_, group, begin, end, from_end);
      cost = model_->cost(group, begin, end, variant == Variant::recomputed);
    }
    if (variant == Variant::none) continue;
    Label label;
    label.figures = labels_[static_cast<std::size_t>(parent)].figures.before(cost, reduction, injected);
    if (least(label.figures, rest) >= bound_) continue;
    label.parent = parent;
    label.state = static_cast<std::int32_t>(state);
    label.begin = static_cast<std::uint32_t>(begin);
    label.depth = depth;
    label.recompute = variant == Variant::recomputed;
    insert(state, label);
  }
}

// A bound on what any cut with this suffix scores, where `rest` bounds the sum and the slowest of the stages before it.
Score LabelDp::least(const CutFigures& figures, double rest) const {
  CutFigures whole = figures;
  whole.sum += rest;
  whole.slowest = std::max(whole.slowest, rest);
  whole.tail = 0;
  double time = whole.iteration_time(model_->traits(), model_->micro_batches());
  if (rest == 0) {
    time += figures.tail;
  } else if (model_->traits().splits_bottleneck) {
    time = std::max(time, whole.sum + steady_ * whole.slowest);
  }
  switch (objective_) {
    case plan::Objective::bottleneck:
      return {whole.slowest, time};
    case plan::Objective::communication:
      return {figures.injected, time};
    default:
      return {time, figures.injected};
  }
}

// Whatever stages come before both. Iteration time is the largest of sums that each add the same to both labels: Σc,
// with or without (m−1) times the slowest (forward, backward), with or without the tail.
bool LabelDp::dominates(const Label& a, const Label& b) const {
  if (limits_.stages ? a.depth != b.depth : std::min(a.depth, deepest_) > std::min(b.depth, deepest_)) return false;
  const CutFigures &x = a.figures, &y = b.figures;
  if (objective_ == plan::Objective::communication && x.injected > y.injected) return false;
  if (objective_ == plan::Objective::bottleneck && x.slowest > y.slowest) return false;
  const double slack = allowed_;
  const auto covered = [&](double of_x, double of_y) {
    return x.sum + of_x <= y.sum + of_y + slack && x.sum + of_x + x.tail <= y.sum + of_y + y.tail + slack;
  };
  if (!covered(0, 0)) return false;
  if (steady_ == 0 || objective_ == plan::Objective::bottleneck) return true;
  if (!model_->traits().splits_bottleneck) {
    return covered(steady_ * std::max(x.slowest, least_slowest_), steady_ * std::max(y.slowest, least_slowest_));
  }
  return covered(steady_ * x.forward, steady_ * y.forward) && covered(steady_ * x.backward, steady_ * y.backward) &&
         covered(steady_ * (x.forward + x.backward), steady_ * (y.forward + y.backward));
}

void LabelDp::insert(std::size_t state, const Label& label) {
  List& all = list(state, label.begin);
  for (const std::int32_t other : all) {
    if (dominates(labels_[static_cast<std::size_t>(other)], label)) return;
  }
  std::erase_if(all, [&](std::int32_t other) { return dominates(label, labels_[static_cast<std::size_t>(other)]); });
  all.push_back(static_cast<std::int32_t>(labels_.size()));
  labels_.push_back(label);
  if (state + 1 != used_.size()) return;
  const Score value = score(objective_, label.figures, *model_);
  if (value >= bound_) return;
  bound_ = value;
  best_ = all.back();
}

void LabelDp::trim(List& list, double rest) {
  if (limits_.width == 0 || list.size() <= limits_.width) return;
  complete_ = false;
  const auto promise = [&](std::int32_t label) {
    return least(labels_[static_cast<std::size_t>(label)].figures, rest);
  };
  std::nth_element(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(limits_.width), list.end(),
                   [&](std::int32_t a, std::int32_t b) { return promise(a) < promise(b); });
  list.resize(limits_.width);
  std::sort(list.begin(), list.end());
}

PipelineCut LabelDp::trace(std::int32_t number) const {
  PipelineCut cut;
  cut.figures = labels_[static_cast<std::size_t>(number)].figures;
  while (number > 0) {
    const Label& label = labels_[static_cast<std::size_t>(number)];
    const Label& behind = labels_[static_cast<std::size_t>(label.parent)];
    CutStage stage{behind.begin, used_[static_cast<std::size_t>(label.state)], label.recompute};
    for (std::size_t q = 0; q < stage.taken.size(); ++q) {
      stage.taken[q] -= used_[static_cast<std::size_t>(behind.state)][q];
    }
    cut.stages.push_back(std::move(stage));
    number = label.parent;
  }
  return cut;
}

bool LabelDp::stop() {
  constexpr std::int64_t kBetweenLooks = 4096;
  ++steps_;
  constexpr std::size_t kMostLabels = 1 << 21;
  if (steps_ > limits_.steps || labels_.size() > kMostLabels || (steps_ % kBetweenLooks == 0 && late(limits_.deadline)))
    stopped_ = true;
  if (stopped_) complete_ = false;
  return stopped_;
}

}  // namespace millrace::partitioners
