// A grid of rules, then moves of single actions.
#include "schedules/common/best_list.h"

#include <algorithm>
#include <initializer_list>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/random.h"

namespace millrace::schedules {
namespace {

constexpr std::uint64_t kReach = 3;               // places that an action moves
constexpr std::size_t kRuleSteps = 1'000'000;     // actions that the rules may schedule in all
constexpr std::uint64_t kMoveSteps = 30'000'000;  // actions that the moves may execute in all
constexpr std::uint64_t kTriesPerAction = 5;

class Best {
 public:
  Best(const Columns& columns, const StageDag& dag, ListObjective objective)
      : columns_(columns), dag_(dag), objective_(objective) {}

  bool empty() const { return orders_.empty(); }
  ColumnOrders take() { return std::move(orders_); }

  void offer(ColumnOrders orders) {
    const std::optional<OrderTimes> times = execute(columns_, dag_, orders);
    if (!times || (!orders_.empty() && key(*times) >= key(times_))) return;
    times_ = *times;
    orders_ = std::move(orders);
  }

  // Moves single actions of random columns, every other time of the one with the longest span, and keeps what is not
  // worse: equal orders lead out of narrow places. Only where every action can get a few tries.
  void descend(std::uint64_t most_tries) {
    std::uint64_t actions = 0;
    for (const auto& order : orders_) actions += order.size();
    const std::uint64_t tries = std::min(most_tries, kMoveSteps / actions);
    if (kMoveSteps / actions < kTriesPerAction * actions) return;
    const Random random(0, "list schedule");
    for (std::uint64_t i = 0; i < tries; ++i) {
      const std::size_t c = i % 2 == 0 ? random.below(orders_.size(), 4 * i) : times_.longest;
      const std::size_t size = orders_[c].size();
      const std::size_t from = random.below(size, 4 * i + 1);
      const std::size_t to = std::min(size - 1, from + 1 + random.below(kReach, 4 * i + 2));
      if (from < to) try_move(c, from, to, random.below(2, 4 * i + 3) == 0);
    }
  }

 private:
  std::pair<double, double> key(const OrderTimes& times) const {
    return {objective_ == ListObjective::span ? times.longest_span : times.makespan, times.spans};
  }

  // After a move: each kind of each stage goes through the micro-batches in order, whichever of them moved.
  static void renumber(std::span<ComputeAction> window) {
    for (ComputeAction& a : window) {
      for (ComputeAction& b : window.subspan(static_cast<std::size_t>(&a - window.data()))) {
        if (a.stage == b.stage && a.kind == b.kind && a.micro_batch > b.micro_batch) {
          std::swap(a.micro_batch, b.micro_batch);
        }
      }
    }
  }

  // A forward comes before its backward_input, that before its backward_weight.
  static bool in_order(std::span<const ComputeAction> window) {
    for (std::size_t i = 0; i < window.size(); ++i) {
      for (const ComputeAction& later : window.subspan(i)) {
        const ComputeAction& a = window[i];
        if (a.stage == later.stage && a.micro_batch == later.micro_batch && a.kind > later.kind) return false;
      }
    }
    return true;
  }

  void try_move(std::size_t c, std::size_t from, std::size_t to, bool later) {
    std::vector<ComputeAction>& order = orders_[c];
    const std::span<ComputeAction> window = std::span(order).subspan(from, to - from + 1);
    const std::vector<ComputeAction> before(window.begin(), window.end());
    std::rotate(window.begin(), later ? window.begin() + 1 : window.end() - 1, window.end());
    renumber(window);
    if (in_order(window) && peak_bytes(columns_, order) <= columns_.columns[c].limit) {
      const std::optional<OrderTimes> times = execute(columns_, dag_, orders_);
      if (times && key(*times) <= key(times_)) {
        times_ = *times;
        return;
      }
    }
    std::copy(before.begin(), before.end(), window.begin());
  }

  const Columns& columns_;
  const StageDag& dag_;
  ListObjective objective_;
  ColumnOrders orders_;
  OrderTimes times_;
};

// What is tried, the most promising first: warm-ups matter only to devices with one stage, the choice among stages only
// to those with several.
std::vector<ListRule> rules(const Columns& columns) {
  using Prefer = ListRule::Prefer;
  const bool several = std::any_of(columns.columns.begin(), columns.columns.end(),
                                   [](const Column& column) { return column.stages.size() > 1; });
  std::vector<ListRule> starts;
  for (const double factor : {1.0, 0.9}) {
    for (const double more : {0.5, 0.75, 0.0, -2.0, 1.0, 0.25, -0.5, -1.0, 2.0}) {
      if (!several) starts.push_back({.warmup = factor, .more_warmup = more});
    }
  }
  for (const bool forward : {true, false}) {
    for (const bool backward : {true, false}) {
      if (several) starts.push_back({.deeper_forward = forward, .deeper_backward = backward});
    }
  }
  std::vector<ListRule> all;
  const auto add = [&](std::size_t most_starts, std::initializer_list<Prefer> prefers,
                       std::initializer_list<double> gaps) {
    for (const double gap : gaps) {
      for (const Prefer prefer : prefers) {
        for (std::size_t i = 0; i < std::min(most_starts, starts.size()); ++i) {
          ListRule& rule = all.emplace_back(starts[i]);
          rule.prefer = prefer;
          rule.gap = gap;
        }
      }
    }
  };
  add(4, {Prefer::backward}, {0.0, 0.5, 0.75});
  add(starts.size(), {Prefer::backward, Prefer::wait_for_backward, Prefer::alternate},
      {0.0, 0.9, 0.5, 0.25, 0.75, 1.0});
  return all;
}

}  // namespace

config::Option list_rules_option() {
  return {"rules", "rules of list scheduling tried, the most promising first", config::Integer{1, 1000}, "1000"};
}

ColumnOrders best_list_order(const Columns& columns, const StageDag& dag, ListObjective objective,
                             std::string_view schedule, ListEffort effort, const std::vector<ColumnOrders>& known) {
  for (const Column& column : columns.columns) {
    double least = 0;
    for (const std::int32_t s : column.stages) least += columns.costs[static_cast<std::size_t>(s)].activations;
    if (least <= column.limit) continue;
    throw InvalidInput(
        fmt::format("schedule {}: the devices of stage {} have room for {:.0f} bytes of activations; one "
                    "micro-batch needs {:.0f}",
                    schedule, column.stages.front(), column.limit, least));
  }
  Best best(columns, dag, objective);
  for (const ColumnOrders& orders : known) {
    bool fits = true;
    for (std::size_t c = 0; c < orders.size(); ++c) {
      fits = fits && peak_bytes(columns, orders[c]) <= columns.columns[c].limit;
    }
    if (fits) best.offer(orders);
  }
  std::size_t actions = 0;
  for (const std::int64_t m : columns.micro_batches) actions += 3 * static_cast<std::size_t>(m);
  std::size_t left = kRuleSteps;
  std::size_t tried = 0;
  for (const ListRule& rule : rules(columns)) {
    if (!best.empty() && (left < actions || tried >= effort.rules)) break;
    ++tried;
    left -= std::min(left, actions);
    if (auto orders = list_schedule(columns, dag, rule)) best.offer(std::move(*orders));
  }
  if (best.empty()) {
    throw InvalidInput(fmt::format("schedule {} finds no order under the memory limits of the devices", schedule));
  }
  best.descend(effort.moves);
  return best.take();
}

ComputeOrder to_compute_order(const Plan& plan, const ColumnOrders& orders) {
  ComputeOrder result(plan);
  for (const std::vector<ComputeAction>& order : orders) {
    for (const ComputeAction& action : order) {
      result.lane(action.stage).add(action.kind, action.micro_batch);
    }
  }
  return result;
}

}  // namespace millrace::schedules
