// For each option of a stage a heap of the places where it may begin, whose keys only grow as the stage gets longer.
#include "partitioners/common/priced_dp.h"

#include <algorithm>
#include <cmath>

#include "base/limits.h"

namespace millrace::partitioners {
namespace {}  // namespace

PricedDp::PricedDp(PipelineModel& model, plan::Objective objective, double growth)
    : model_(&model),
      objective_(objective),
      items_(model.items()),
      value_(items_ + 1),
      backward_(items_ + 1),
      depth_(items_ + 1),
      from_(items_ + 1),
      option_(items_ + 1),
      used_((items_ + 1) * model.deal().queues()) {
  for (std::size_t q = 0; q < model.deal().queues(); ++q) add_options(q, replica_counts(q, growth));
  waiting_.resize(options_.size());
}

void PricedDp::narrow(const std::vector<CutStage>& stages) {
  for (std::size_t q = 0; q < model_->deal().queues(); ++q) {
    std::vector<int> counts;
    for (const Option& option : options_) {
      if (option.queue == q && !option.recompute) counts.push_back(option.replicas);
    }
    std::vector<bool> near(counts.size(), false);
    for (const CutStage& stage : stages) {
      if (stage.taken[q] == 0) continue;
      const auto at =
          static_cast<std::size_t>(std::lower_bound(counts.begin(), counts.end(), stage.taken[q]) - counts.begin());
      for (std::size_t i = at > 0 ? at - 1 : 0; i <= at + 1 && i < counts.size(); ++i) near[i] = true;
    }
    std::erase_if(options_, [&](const Option& option) {
      if (option.queue != q) return false;
      const auto at = std::lower_bound(counts.begin(), counts.end(), option.replicas) - counts.begin();
      return !near[static_cast<std::size_t>(at)];
    });
  }
  waiting_.resize(options_.size());
}

// All small numbers; of the larger ones, in each range up to `growth` times its start, the one whose replicas are
// fullest: 32 rows on 7 devices take as long as on 8 with 4 rows each and a fraction more.
std::vector<int> PricedDp::replica_counts(std::size_t queue, double growth) const {
  constexpr int kAllUpTo = 4;
  const int most = model_->deal().count(queue);
  const auto rows = static_cast<double>(model_->rows());
  const auto fullness = [&](int r) { return rows / (r * std::ceil(rows / r)); };
  std::vector<int> counts;
  for (int r = 1; r <= std::min<std::int64_t>(most, model_->rows());) {
    int best = r, end = r <= kAllUpTo ? r + 1 : std::max(r + 1, static_cast<int>(r * growth));
    for (int other = r; other < end && other <= most; ++other) {
      if (fullness(other) >= fullness(best)) best = other;
    }
    counts.push_back(best);
    r = end;
  }
  if (counts.back() < most && counts.back() < model_->rows()) counts.push_back(most);
  return counts;
}

std::vector<double> PricedDp::traffic_sums(int group) const {
  std::vector<double> sums{0};
  for (std::size_t end = 1; end <= items_; ++end) sums.push_back(model_->reduction_traffic(group, 0, end));
  return sums;
}

void PricedDp::add_options(std::size_t queue, const std::vector<int>& replicas) {
  const DeviceDeal& deal = model_->deal();
  const cluster::Cluster& cluster = *model_->problem().cluster;
  const int count = deal.count(queue);
  const auto group = [&](int first, int taken) {
    Counts behind(deal.queues(), 0), of(deal.queues(), 0);
    behind[queue] = count - first - taken;
    of[queue] = taken;
    return model_->group(behind, of);
  };
  for (const int r : replicas) {
    Option option;
    option.queue = queue;
    option.replicas = r;
    option.inside = option.across = group(2 * r <= count ? r : count - r, r);
    for (int first = 1; first + r <= count; ++first) {
      if (cluster.node_of(deal.device(0, queue, first - 1)) == cluster.node_of(deal.device(0, queue, first))) continue;
      option.across = group(first, r);
      break;
    }
    for (const bool recompute : {false, true}) {
      if (recompute && model_->problem().recompute == plan::Recompute::none) continue;
      option.recompute = recompute;
      option.compute = model_->compute_sums(option.inside, recompute);
      option.forward = model_->forward_sums(option.inside);
      option.weight = objective_ == plan::Objective::communication ? traffic_sums(option.inside) : option.compute;
      options_.push_back(option);
    }
  }
}

// Whether the stage before is on another node.
int PricedDp::group_at(const Option& option, std::size_t begin) const {
  if (option.inside == option.across) return option.inside;
  const int first = used_[begin * model_->deal().queues() + option.queue];
  const int last = first + option.replicas - 1;
  if (first == 0 || last >= model_->deal().count(option.queue)) return option.inside;
  const cluster::Cluster& cluster = *model_->problem().cluster;
  const bool across = cluster.node_of(model_->deal().device(0, option.queue, first - 1)) !=
                      cluster.node_of(model_->deal().device(0, option.queue, last));
  return across ? option.across : option.inside;
}

// What a stage pays for what it receives, in the unit of what is minimised.
double PricedDp::passing(int group, std::size_t begin, std::size_t end) const {
  if (objective_ == plan::Objective::communication) return model_->activation_traffic(begin, end);
  return 2 * model_->receive(group, begin, end);
}

bool PricedDp::fits(const Option& option, int group, std::size_t begin, std::size_t end) const {
  if (!model_->memory_limited()) return true;
  const std::int64_t from_end = std::max<std::int64_t>(1, stages_ - depth_[begin]);
  const std::int64_t live =
      model_->traits().needed(model_->micro_batches(), end == items_ ? 1 : from_end, model_->most_stages());
  return model_->most_live(group, begin, end, option.recompute) >= live;
}

// The best place for a stage of the option that ends here to begin. Places that a bound rules out are dropped, as it
// rules them out for every later end; those that do not fit in memory are set aside, as fewer bytes may cross later.
const PricedDp::Waiting* PricedDp::take(std::size_t number, std::size_t end, const Bounds& bounds) {
  constexpr std::size_t kMostAside = 4;
  const Option& option = options_[number];
  const bool timed = objective_ != plan::Objective::communication;
  std::vector<Waiting>& heap = waiting_[number];
  aside_.clear();
  const Waiting* found = nullptr;
  const auto drop = [&] {
    std::pop_heap(heap.begin(), heap.end());
    heap.pop_back();
  };
  while (!heap.empty()) {
    const Waiting top = heap.front();
    const double passing = this->passing(top.group, top.begin, end);
    if (timed && option.compute[end] - option.compute[top.begin] + passing > bounds.slowest) {
      drop();
      continue;
    }
    if (bounds.exposed < kNever &&
        model_->reduction(top.group, top.begin, end) > bounds.exposed + backward_[top.begin]) {
      drop();
      continue;
    }
    const double key = value_[top.begin] - option.weight[top.begin] + passing;
    if (key > top.key) {  // it receives more than when it was looked at last
      drop();
      heap.push_back({key, top.begin, top.group});
      std::push_heap(heap.begin(), heap.end());
      if (heap.front().begin != top.begin) continue;
    }
    if (fits(option, top.group, top.begin, end)) {
      found = heap.data();
      break;
    }
    if (aside_.size() == kMostAside) break;
    aside_.push_back(heap.front());
    drop();
  }
  if (aside_.empty()) return found;
  if (found != nullptr) taken_ = *found;
  for (const Waiting& waiting : aside_) {
    heap.push_back(waiting);
    std::push_heap(heap.begin(), heap.end());
  }
  return found != nullptr ? &taken_ : nullptr;
}

void PricedDp::wait(std::size_t option, std::size_t begin) {
  waiting_[option].push_back({value_[begin] - options_[option].weight[begin], static_cast<std::uint32_t>(begin),
                              group_at(options_[option], begin)});
  std::push_heap(waiting_[option].begin(), waiting_[option].end());
}

void PricedDp::reach(std::size_t end, const Bounds& bounds, const Prices& prices) {
  const bool all_recompute = model_->problem().recompute == plan::Recompute::all;
  const bool last_at_once = model_->traits().live(model_->micro_batches(), 1, model_->most_stages()) == 1;
  double least = kNever;
  std::size_t best_begin = 0, best_option = 0;
  for (std::size_t k = 0; k < options_.size(); ++k) {
    const Option& option = options_[k];
    if (all_recompute && !option.recompute && !(end == items_ && last_at_once)) continue;
    const Waiting* begin = take(k, end, bounds);
    if (begin == nullptr) continue;
    const double value = begin->key + option.weight[end] + prices.device[option.queue] * option.replicas + prices.stage;
    if (value >= least) continue;
    least = value;
    best_begin = begin->begin;
    best_option = k;
  }
  value_[end] = least;
  if (least == kNever) return;
  const Option& option = options_[best_option];
  const std::size_t queues = model_->deal().queues();
  from_[end] = static_cast<std::int32_t>(best_begin);
  option_[end] = static_cast<std::int32_t>(best_option);
  depth_[end] = depth_[best_begin] + 1;
  for (std::size_t q = 0; q < queues; ++q) used_[end * queues + q] = used_[best_begin * queues + q];
  used_[end * queues + option.queue] += option.replicas;
  backward_[end] = backward_[best_begin] + option.compute[end] - option.compute[best_begin] -
                   (option.forward[end] - option.forward[best_begin]);
  for (std::size_t k = 0; end < items_ && k < options_.size(); ++k) wait(k, end);
}

std::optional<PricedDp::Outcome> PricedDp::solve(const Bounds& bounds, const Prices& prices, std::int64_t stages) {
  stages_ = stages;
  value_[0] = 0;
  std::fill_n(used_.begin(), model_->deal().queues(), 0);
  for (std::size_t k = 0; k < options_.size(); ++k) {
    waiting_[k].clear();
    wait(k, 0);
  }
  for (std::size_t end = 1; end <= items_; ++end) reach(end, bounds, prices);
  if (value_[items_] == kNever) return std::nullopt;
  Outcome outcome = trace();
  outcome.least = value_[items_] - prices.stage * static_cast<double>(outcome.cut.stages.size());
  for (std::size_t q = 0; q < outcome.used.size(); ++q) outcome.least -= prices.device[q] * outcome.used[q];
  return outcome;
}

PricedDp::Outcome PricedDp::trace() const {
  const std::size_t queues = model_->deal().queues();
  Outcome outcome;
  for (std::size_t end = items_; end > 0; end = static_cast<std::size_t>(from_[end])) {
    const Option& option = options_[static_cast<std::size_t>(option_[end])];
    CutStage stage{end, Counts(queues, 0), option.recompute};
    stage.taken[option.queue] = option.replicas;
    outcome.cut.stages.push_back(std::move(stage));
  }
  std::reverse(outcome.cut.stages.begin(), outcome.cut.stages.end());
  for (std::size_t q = 0; q < queues; ++q) outcome.used.push_back(used_[items_ * queues + q]);
  return outcome;
}

}  // namespace millrace::partitioners
