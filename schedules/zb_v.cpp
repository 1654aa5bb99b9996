// The placement is checked and the limit set; the published order competes with those of list scheduling. METHODS 2.
#include "schedules/zb_v.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/errors.h"
#include "schedules/common/best_list.h"
#include "schedules/common/plan_rules.h"

namespace millrace::schedules {
namespace {

// The order of one device of the published schedule: its two stages go through m micro-batches, each action taken only
// while there are micro-batches left.
class DeviceOrder {
 public:
  DeviceOrder(std::int32_t down, std::int32_t up, std::int64_t m) : stages_{down, up}, m_(m) {}

  std::vector<ComputeAction> write(std::int64_t p, std::int64_t r) {
    const auto split_backward = [&](int chunk) {
      add(ComputeKind::backward_input, chunk);
      add(ComputeKind::backward_weight, chunk);
    };
    for (std::int64_t i = 0; i < 2 * (p - r) - 1; ++i) add(ComputeKind::forward, 0);
    for (std::int64_t i = 0; i < r; ++i) {
      add(ComputeKind::forward, 1);
      add(ComputeKind::forward, 0);
    }
    for (std::int64_t i = 0; i < p - r; ++i) {
      add(ComputeKind::forward, 1);
      split_backward(1);
    }
    while (done(ComputeKind::forward, 1) < done(ComputeKind::forward, 0) || done(ComputeKind::forward, 0) < m_) {
      for (const int chunk : {0, 1}) {
        add(ComputeKind::forward, chunk);
        split_backward(chunk);
      }
    }
    for (std::int64_t i = 0; i < r; ++i) {
      add(ComputeKind::backward_input, 0);
      add(ComputeKind::backward_input, 1);
    }
    for (std::int64_t i = 0; i < p - r; ++i) split_backward(0);
    for (const int chunk : {1, 0}) {
      while (done(ComputeKind::backward_weight, chunk) < done(ComputeKind::backward_input, chunk)) {
        add(ComputeKind::backward_weight, chunk);
      }
    }
    return std::move(order_);
  }

 private:
  std::int64_t& done(ComputeKind kind, int chunk) { return done_[{kind, chunk}]; }

  void add(ComputeKind kind, int chunk) {
    std::int64_t& count = done(kind, chunk);
    if (count == m_) return;
    order_.push_back({kind, stages_[static_cast<std::size_t>(chunk)], static_cast<std::int32_t>(count++)});
  }

  std::array<std::int32_t, 2> stages_;
  std::int64_t m_;
  std::map<std::pair<ComputeKind, int>, std::int64_t> done_;
  std::vector<ComputeAction> order_;
};

}  // namespace

config::Options zb_v_options() {
  return {{"moves", "single moves tried on the best order; 0 is quick, for searches", config::Integer{0, 1'000'000},
           "5000"},
          list_rules_option()};
}

ComputeOrder zb_v(const Plan& plan, const StageDag& dag, const StageCosts& costs, const config::Values& options) {
  require_no_warmup(plan, "zb-v");
  Columns columns = make_columns(plan, costs, "zb-v");
  ColumnOrders published(columns.columns.size());
  for (std::size_t n = 0; n < plan.pipelines.size(); ++n) {
    const std::vector<Stage>& stages = plan.pipelines[n].stages;
    const auto first = static_cast<std::size_t>(flat_index(plan, {static_cast<int>(n), 0}));
    for (std::size_t s = 0; s < stages.size(); ++s) {
      Column& column = columns.columns[static_cast<std::size_t>(columns.column_of[first + s])];
      const bool paired = stages.size() % 2 == 0 && stages[s].devices == stages[stages.size() - 1 - s].devices;
      if (!paired || column.stages.size() != 2) {
        throw InvalidInput(fmt::format(
            "schedule zb-v places stages s and 2p - 1 - s on one device each, and nothing else there; stage "
            "{} of the {} of pipeline {} is not placed so",
            s, stages.size(), n));
      }
      const double pair =
          columns.costs[first + s].activations + columns.costs[first + stages.size() - 1 - s].activations;
      if (s < stages.size() / 2) {
        // With no bubble where F = B = W and m ≥ 2p; list scheduling has to do better where they differ.
        const auto down = static_cast<std::int32_t>(first + s);
        const auto up = static_cast<std::int32_t>(first + stages.size() - 1 - s);
        published[static_cast<std::size_t>(columns.column_of[first + s])] =
            DeviceOrder(down, up, plan.pipelines[n].micro_batches)
                .write(static_cast<std::int64_t>(stages.size() / 2), static_cast<std::int64_t>(s));
      }
      column.limit = std::min(column.limit, static_cast<double>(stages.size() / 2) * pair);
    }
  }
  return to_compute_order(plan, best_list_order(columns, dag, ListObjective::span, "zb-v",

                                                {static_cast<std::uint64_t>(options.integer("moves")),
                                                 static_cast<std::size_t>(options.integer("rules"))},
                                                {published}));
}

}  // namespace millrace::schedules
