// A grid of rules, then a descent over single moves.
#include "schedules/common/best_list.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "base/errors.h"

namespace millrace::schedules {
namespace {

constexpr std::size_t kReach = 3;           // places that an action moves
constexpr std::size_t kSteps = 20'000'000;  // executed actions that the descent may cost in all

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

  // Moves one action at a time to another place of its column, first improvement, until a whole pass finds none.
  void descend() {
    std::size_t actions = 0;
    for (const auto& order : orders_) actions += order.size();
    std::size_t steps_left = kSteps;
    for (bool improved = true; improved;) {
      improved = false;
      for (std::size_t c = 0; c < orders_.size(); ++c) {
        for (std::size_t i = 0; i < orders_[c].size(); ++i) {
          for (std::size_t reach = 1; reach <= kReach && i + reach < orders_[c].size(); ++reach) {
            for (const bool later : {true, false}) {
              if (steps_left < actions) return;
              steps_left -= actions;
              improved = try_move(c, i, i + reach, later) || improved;
            }
          }
        }
      }
    }
  }

 private:
  std::tuple<double, double, double> key(const OrderTimes& times) const {
    return objective_ == ListObjective::span ? std::tuple(times.longest_span, times.makespan, times.spans)
                                             : std::tuple(times.makespan, times.longest_span, times.spans);
  }

  static bool in_own_order(const std::vector<ComputeAction>& order, std::size_t from, std::size_t to) {
    // An action may not pass one of its own stage that has the same kind or belongs to the same micro-batch.
    for (std::size_t i = from; i < to; ++i) {
      for (std::size_t j = i + 1; j <= to; ++j) {
        const ComputeAction& a = order[i];
        const ComputeAction& b = order[j];
        if (a.stage != b.stage) continue;
        if (a.kind == b.kind && a.micro_batch > b.micro_batch) return false;
        if (a.micro_batch == b.micro_batch && a.kind > b.kind) return false;
      }
    }
    return true;
  }

  bool try_move(std::size_t c, std::size_t from, std::size_t to, bool later) {
    std::vector<ComputeAction>& order = orders_[c];
    const auto first = order.begin() + static_cast<std::ptrdiff_t>(from);
    const auto last = order.begin() + static_cast<std::ptrdiff_t>(to) + 1;
    const auto turn = [&](bool left) {
      left ? std::rotate(first, first + 1, last) : std::rotate(first, last - 1, last);
    };
    turn(later);
    if (in_own_order(order, from, to) && peak_bytes(columns_, order) <= columns_.columns[c].limit) {
      const std::optional<OrderTimes> times = execute(columns_, dag_, orders_);
      if (times && key(*times) < key(times_)) {
        times_ = *times;
        return true;
      }
    }
    turn(!later);
    return false;
  }

  const Columns& columns_;
  const StageDag& dag_;
  ListObjective objective_;
  ColumnOrders orders_;
  OrderTimes times_;
};

// What is tried: warm-ups matter only to devices with one stage, the choice among stages only to those with several.
std::vector<ListRule> rules(const Columns& columns) {
  using Prefer = ListRule::Prefer;
  const bool several = std::any_of(columns.columns.begin(), columns.columns.end(),
                                   [](const Column& column) { return column.stages.size() > 1; });
  const std::vector<double> warmups = {-2.0, -1.0, -0.5, 0.0, 0.25, 0.5, 0.75, 1.0, 2.0};
  std::vector<ListRule> all;
  for (const Prefer prefer : {Prefer::backward, Prefer::alternate, Prefer::wait_for_backward}) {
    for (const double gap : {0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0}) {
      if (!several) {
        for (const double more : warmups) all.push_back({prefer, more, gap});
        continue;
      }
      for (const bool forward : {true, false}) {
        for (const bool backward : {true, false}) all.push_back({prefer, 0, gap, forward, backward});
      }
    }
  }
  return all;
}

}  // namespace

ColumnOrders best_list_order(const Columns& columns, const StageDag& dag, ListObjective objective,
                             std::string_view schedule, const std::vector<ColumnOrders>& known) {
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
  for (const ListRule& rule : rules(columns)) {
    if (auto orders = list_schedule(columns, dag, rule)) best.offer(std::move(*orders));
  }
  if (best.empty()) {
    throw InvalidInput(fmt::format("schedule {} finds no order under the memory limits of the devices", schedule));
  }
  best.descend();
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
