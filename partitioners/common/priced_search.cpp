// Bisects prices until the devices suffice, walks bounds down, and mends what prices cannot reach.
#include "partitioners/common/priced_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/limits.h"

namespace millrace::partitioners {
namespace {

constexpr double kCoarseGrowth = 1.5, kFineGrowth = 1.2;  // of numbers of replicas

int replicas(const CutStage& stage) { return std::accumulate(stage.taken.begin(), stage.taken.end(), 0); }

}  // namespace

PricedSearch::PricedSearch(PipelineModel& model, plan::Objective objective, Limits limits)
    : model_(&model),
      objective_(objective),
      limits_(limits),
      dp_(model, objective, limits.fine ? kFineGrowth : kCoarseGrowth) {
  Counts one(model.deal().queues(), 0);
  one[0] = 1;
  const int group = model.group(Counts(one.size(), 0), one);
  if (objective == plan::Objective::communication) {
    for (std::size_t end = 0; end <= model.items(); ++end) {
      work_.push_back(end > 0 ? model.segments().gradient_bytes(0, end) : 0.0);
    }
  } else {
    work_ = model.compute_sums(group, false);
  }
  prices_.assign(one.size() + 1, start_price());
  prices_.back() = 0;
}

// What the devices of one stage are worth is its time over their number: below the time of all work on all devices.
double PricedSearch::start_price() const {
  constexpr double kFew = 4;
  if (objective_ == plan::Objective::communication) return 0;
  return model_->least_time(model_->deal().counts(), model_->items()) / kFew;
}

void PricedSearch::adjust(Resource& resource, bool enough) const {
  constexpr double kStep = 2;
  (enough ? resource.enough : resource.too_low) = resource.price;
  if (resource.enough == 0) {
    resource.price = resource.price > 0 ? resource.price * kStep : std::max(start_price(), 1e-30);
  } else {
    resource.price = resource.too_low > 0 ? std::sqrt(resource.too_low * resource.enough) : resource.price / kStep;
  }
}

// The best cut that has devices enough, over several prices; none: these bounds cannot be kept.
std::optional<PipelineCut> PricedSearch::within(const PricedDp::Bounds& bounds) {
  constexpr int kPasses = 24;
  constexpr double kClose = 1.02;
  const int passes = limits_.fine ? 5 : 2;          // after the first that suffices
  const double spared = limits_.fine ? 0.0 : 0.05;  // part of the devices that may be handed out afterwards
  const Counts counts = model_->deal().counts();
  std::vector<Resource> resources;
  for (const double price : prices_) resources.push_back({price, 0, 0});
  std::optional<PipelineCut> found;
  Score found_score{};
  for (int pass = 0, after = 0; pass < kPasses && after < passes && !late(); ++pass) {
    PricedDp::Prices prices;
    for (std::size_t q = 0; q < counts.size(); ++q) prices.device.push_back(resources[q].price);
    prices.stage = resources.back().price;
    auto outcome = dp_.solve(bounds, prices, stages_);
    if (!outcome) break;
    const auto stages = static_cast<std::int64_t>(outcome->cut.stages.size());
    const bool few_stages = !limits_.stages || stages <= *limits_.stages;
    bool enough = few_stages, spare = false;
    for (std::size_t q = 0; q < counts.size(); ++q) {
      enough = enough && outcome->used[q] <= counts[q];
      spare = spare || outcome->used[q] < counts[q] * (1 - spared);
    }
    // The stages behind a stage decide how much of it is alive: they are those of the cut before.
    const bool more_stages = stages > stages_;
    if (model_->memory_limited()) stages_ = stages;
    if (model_->memory_limited() && more_stages) continue;
    const Counts used = outcome->used;
    if (enough) {
      for (std::size_t r = 0; r < resources.size(); ++r) prices_[r] = resources[r].price;
      const auto cut = complete(std::move(*outcome));
      const Score value = cut ? score(objective_, cut->figures, *model_) : Score{};
      if (cut && value < found_score) {
        found = cut;
        found_score = value;
      }
      if (!spare) break;
    }
    if (found) ++after;
    bool close = true;
    for (std::size_t r = 0; r < resources.size(); ++r) {
      if (r == counts.size() && !limits_.stages) continue;
      Resource& resource = resources[r];
      adjust(resource, r < counts.size() ? used[r] <= counts[r] : few_stages);
      close = close && resource.too_low > 0 && resource.enough < kClose * resource.too_low && resource.enough > 0;
    }
    if (close && found) break;
  }
  return found;
}

// Every device must be in a stage, and there may have to be more stages.
std::optional<PipelineCut> PricedSearch::complete(PricedDp::Outcome outcome) {
  PipelineCut cut = std::move(outcome.cut);
  Counts left = model_->deal().counts();
  for (std::size_t q = 0; q < left.size(); ++q) left[q] -= outcome.used[q];
  while (limits_.stages && cut.stages.size() < static_cast<std::size_t>(*limits_.stages)) {
    if (!split(cut, left)) return std::nullopt;
  }
  hand_out(cut, left);
  if (!assess(*model_, cut)) return std::nullopt;
  return cut;
}

// Divides the stage with the most work for its devices that has two items, at half its work. The first part takes half
// of its devices, or one that is left, or one of the largest stage.
bool PricedSearch::split(PipelineCut& cut, Counts& left) const {
  const auto begin_of = [&](std::size_t s) { return s > 0 ? cut.stages[s - 1].end : 0; };
  std::size_t chosen = cut.stages.size();
  double most = -1;
  for (std::size_t s = 0; s < cut.stages.size(); ++s) {
    const double share = (work_[cut.stages[s].end] - work_[begin_of(s)]) / replicas(cut.stages[s]);
    if (cut.stages[s].end - begin_of(s) < 2 || share <= most) continue;
    most = share;
    chosen = s;
  }
  if (chosen == cut.stages.size()) return false;
  CutStage& second = cut.stages[chosen];
  CutStage first{begin_of(chosen) + 1, Counts(left.size(), 0), second.recompute};
  const double half = 0.5 * (work_[begin_of(chosen)] + work_[second.end]);
  while (first.end + 1 < second.end && work_[first.end] < half) ++first.end;
  CutStage* giver = &second;
  const auto free = std::find_if(left.begin(), left.end(), [](int count) { return count > 0; });
  if (replicas(second) == 1 && free == left.end()) {
    giver = &*std::max_element(cut.stages.begin(), cut.stages.end(),
                               [](const CutStage& a, const CutStage& b) { return replicas(a) < replicas(b); });
    if (replicas(*giver) < 2) return false;
  }
  if (replicas(second) == 1 && free != left.end()) {
    --*free;
    ++first.taken[static_cast<std::size_t>(free - left.begin())];
  } else {
    const auto queue =
        static_cast<std::size_t>(std::max_element(giver->taken.begin(), giver->taken.end()) - giver->taken.begin());
    const int moved = giver == &second ? std::max(1, giver->taken[queue] / 2) : 1;
    giver->taken[queue] -= moved;
    first.taken[queue] += moved;
  }
  cut.stages.insert(cut.stages.begin() + static_cast<std::ptrdiff_t>(chosen), std::move(first));
  return true;
}

// Devices that are left go where most work waits for a device, or, where bytes count, where they add the fewest.
void PricedSearch::hand_out(PipelineCut& cut, Counts& left) {
  struct Need {
    double share = 0;
    std::size_t stage = 0;
    bool operator<(const Need& other) const { return share < other.share; }
  };
  const bool bytes = objective_ == plan::Objective::communication;
  const auto need = [&](std::size_t s) {
    const double amount = work_[cut.stages[s].end] - work_[s > 0 ? cut.stages[s - 1].end : 0];
    return Need{bytes ? -amount : amount / replicas(cut.stages[s]), s};
  };
  std::vector<Need> needs;
  for (std::size_t s = 0; s < cut.stages.size(); ++s) needs.push_back(need(s));
  std::make_heap(needs.begin(), needs.end());
  for (std::size_t q = 0; q < left.size(); ++q) {
    for (; left[q] > 0; --left[q]) {
      std::pop_heap(needs.begin(), needs.end());
      ++cut.stages[needs.back().stage].taken[q];
      needs.back() = need(needs.back().stage);
      std::push_heap(needs.begin(), needs.end());
    }
  }
}

void PricedSearch::keep(const PipelineCut& cut) {
  const Score value = score(objective_, cut.figures, *model_);
  if (value >= score_) return;
  score_ = value;
  best_ = cut;
}

// Bounds on the slowest stage from `from` down to `until`. False: even the loosest of them cannot win.
bool PricedSearch::descend(double exposed, double from, double step, double until) {
  const double steady = static_cast<double>(model_->micro_batches() - 1);
  const double least = model_->least_time(model_->deal().counts(), model_->items());
  bool first = true;
  for (double slowest = from; slowest >= until && !late();) {
    const auto cut = within({slowest, exposed});
    if (!cut) return !first;
    keep(*cut);
    if (objective_ == plan::Objective::communication) return true;
    if (objective_ == plan::Objective::bottleneck) {
      slowest = std::min(slowest, cut->figures.slowest) * (1 - step);
      continue;
    }
    // Σc only grows as the bound falls.
    if (cut->figures.sum + steady * least >= score_.first) return !first;
    first = false;
    slowest = std::min(slowest, cut->figures.slowest) * (1 - step);
    if (steady > 0) slowest = std::min(slowest, (score_.first - cut->figures.sum) / steady);
  }
  return true;
}

std::optional<PipelineCut> PricedSearch::best(double step) {
  constexpr double kSmall = 0.01;
  const Counts all = model_->deal().counts();
  PipelineCut whole{{{model_->items(), all, false}}, {}};
  if (limits_.stages.value_or(1) == 1 && assess(*model_, whole)) keep(whole);
  descend(kNever, kNever, step, 0);
  if (objective_ == plan::Objective::communication || objective_ == plan::Objective::bottleneck) return best_;
  const double reduction = model_->reduction(model_->group(Counts(all.size(), 0), all), 0, model_->items());
  for (double exposed = reduction / 2; exposed > kSmall * score_.first && !late(); exposed /= 2) {
    if (!descend(exposed, kNever, step, 0)) break;
  }
  return best_;
}

PipelineCut PricedSearch::around(const PipelineCut& known, double step, double least_step) {
  constexpr double kSmall = 0.01;
  constexpr double kWidest = 8;  // steps of the bound on what is exposed, in steps of that on the slowest
  PipelineCut start = known;
  if (!assess(*model_, start)) return known;
  keep(start);
  const double reduction =
      model_->reduction(model_->group(Counts(model_->deal().queues(), 0), model_->deal().counts()), 0, model_->items());
  while (step >= least_step && !late()) {
    const Score before = score_;
    const double centre = best_->figures.slowest;
    const double exposed = std::max(best_->figures.tail, kSmall * score_.first);
    const double widest = std::min(kWidest * step, 0.5);
    const std::vector<double> bounds = reduction > 0
                                           ? std::vector<double>{exposed * (1 + widest), exposed * (1 - widest)}
                                           : std::vector<double>{kNever};
    for (const double bound : bounds) descend(bound, centre * (1 + 2 * step), step, centre * (1 - 4 * step));
    if (score_ == before) step /= 3;
  }
  return *best_;
}

}  // namespace millrace::partitioners
