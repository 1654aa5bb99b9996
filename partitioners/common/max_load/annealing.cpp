// Metropolis steps under geometric cooling.
#include "partitioners/common/max_load/annealing.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/random.h"
#include "partitioners/common/max_load/assignment.h"

namespace millrace::partitioners::max_load {
namespace {

// Chosen by trial on the workloads of dnn-partitioning.
constexpr double kHot = 1.0, kCold = 3e-3;  // temperatures, of a sum in which the start's fullest device counts 1
constexpr std::int64_t kStepsPerItem = 20'000;
constexpr std::int64_t kLeastSteps = 100'000, kMostSteps = 2'000'000;  // of a round
constexpr std::int64_t kStepsPerLook = 4096;                           // at the clock; loads are added up again then
constexpr std::uint32_t kGroupShare = 26, kNearShare = 205;            // of 256 steps
constexpr std::size_t kLargestGroup = 7;
constexpr double kRounding = 1e-10;  // of sums that moves change

double power12(double x) {
  const double square = x * x, fourth = square * square;
  return fourth * fourth * fourth;
}

class Annealer {
 public:
  Annealer(const Model& model, const std::vector<std::uint32_t>& start, const Annealing& how)
      : model_(model), how_(how), start_(start), now_(model, start) {
    best_.device_of = start;
    best_.load = now_.max_load();
    steps_ = std::clamp(kStepsPerItem * static_cast<std::int64_t>(model.size()), kLeastSteps, kMostSteps);
  }

  Annealed run() {
    for (std::int64_t round = 0; round < how_.rounds && !done(); ++round) {
      now_ = Assignment(model_, round % 2 == 0 ? start_ : best_.device_of);
      unit_ = best_.load;
      anneal(round);
    }
    return best_;
  }

 private:
  bool done() {
    best_.late = std::chrono::steady_clock::now() > how_.deadline;
    return best_.late || best_.load <= how_.enough * (1 + kRounding);
  }

  void anneal(std::int64_t round) {
    random_.emplace(how_.seed, "annealing", static_cast<std::uint64_t>(round));
    const double cooling = std::pow(kCold / kHot, static_cast<double>(kStepsPerLook) / static_cast<double>(steps_));
    temperature_ = kHot;
    for (std::int64_t step = 0; step < steps_; ++step) {
      if (step % kStepsPerLook == kStepsPerLook - 1) {
        if (done()) return;
        now_.recount();
        temperature_ *= cooling;
      }
      at_ = 2 * static_cast<std::uint64_t>(step);
      try_move(random_->bits(at_));
    }
  }

  void try_move(std::uint64_t bits) {
    const Item item = static_cast<Item>((bits >> 32) * model_.size() >> 32);
    const auto kind = static_cast<std::uint32_t>(bits & 0xff);
    const std::uint32_t pick = static_cast<std::uint32_t>(bits >> 8) & 0xffffff;
    const std::uint32_t to = target(item, pick, kind);
    if (to == now_.device_of(item) || !now_.fits(item, to)) return;
    if (kind < kGroupShare) {
      move_group(item, to, pick);
    } else {
      move_one(item, to);
    }
  }

  // Mostly the device of an item that shares a transfer.
  std::uint32_t target(Item item, std::uint32_t pick, std::uint32_t kind) const {
    const auto& touching = model_.touching[item];
    if (touching.empty() || kind >= kNearShare) return pick % now_.devices();
    const Transfer& transfer = model_.transfers[touching[pick % touching.size()]];
    const std::size_t end = pick / touching.size() % (transfer.to.size() + 1);
    return now_.device_of(end == transfer.to.size() ? transfer.from : transfer.to[end]);
  }

  double weight(double load) const { return power12(load / unit_); }
  bool accepted(double worse) const {
    return worse <= 0 || random_->uniform(at_ + 1) < std::exp(-worse / temperature_);
  }

  void move_one(Item item, std::uint32_t to) {
    const Assignment::Loads loads = now_.after_move(item, to);
    const double before = weight(now_.load(now_.device_of(item))) + weight(now_.load(to));
    if (!accepted(weight(loads.from) + weight(loads.to) - before)) return;
    now_.move(item, to, loads);
    keep(loads);
  }

  void move_group(Item first, std::uint32_t to, std::uint32_t pick) {
    const std::uint32_t from = now_.device_of(first);
    const double before = weight(now_.load(from)) + weight(now_.load(to));
    const std::size_t most = 2 + pick % (kLargestGroup - 1);
    group_.clear();
    take(first, to);
    for (std::size_t i = 0; i < group_.size() && group_.size() < most; ++i) {
      for (const std::size_t t : model_.touching[group_[i]]) {
        const Transfer& transfer = model_.transfers[t];
        if (group_.size() < most && now_.device_of(transfer.from) == from) take(transfer.from, to);
        for (const Item reader : transfer.to) {
          if (group_.size() < most && now_.device_of(reader) == from) take(reader, to);
        }
      }
    }
    if (accepted(weight(now_.load(from)) + weight(now_.load(to)) - before)) {
      return keep({now_.load(from), now_.load(to)});
    }
    for (; !group_.empty(); group_.pop_back()) now_.move(group_.back(), from, now_.after_move(group_.back(), from));
  }

  void take(Item item, std::uint32_t to) {
    if (!now_.fits(item, to)) return;
    now_.move(item, to, now_.after_move(item, to));
    group_.push_back(item);
  }

  void keep(const Assignment::Loads& changed) {
    if (std::max(changed.from, changed.to) >= best_.load) return;
    const double most = now_.max_load();
    if (most >= best_.load) return;
    best_.load = most;
    best_.device_of = now_.all();
  }

  const Model& model_;
  const Annealing& how_;
  const std::vector<std::uint32_t>& start_;
  Assignment now_;
  Annealed best_;
  std::int64_t steps_ = 0;
  double unit_ = 1;
  double temperature_ = kHot;
  std::optional<Random> random_;  // of the round; two numbers a step
  std::uint64_t at_ = 0;
  std::vector<Item> group_;
};

}  // namespace

Annealed annealed(const Model& model, const std::vector<std::uint32_t>& start, const Annealing& how) {
  return Annealer(model, start, how).run();
}

}  // namespace millrace::partitioners::max_load
