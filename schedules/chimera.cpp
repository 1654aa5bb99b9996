// Two 1F1B orders a device, merged by the earliest start in simulated time. METHODS 2.
#include "schedules/chimera.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/limits.h"
#include "schedules/common/columns.h"
#include "schedules/common/plan_rules.h"

namespace millrace::schedules {
namespace {

void require_pairs(const Plan& plan) {
  if (plan.pipelines.size() % 2 != 0) {
    throw InvalidInput(fmt::format("schedule chimera takes pipelines in pairs, one in each direction; the plan has {}",
                                   plan.pipelines.size()));
  }
  for (std::size_t n = 0; n < plan.pipelines.size(); n += 2) {
    const Pipeline& down = plan.pipelines[n];
    const Pipeline& up = plan.pipelines[n + 1];
    const std::size_t p = down.stages.size();
    bool mirrored = up.stages.size() == p;
    for (std::size_t s = 0; mirrored && s < p; ++s) mirrored = down.stages[s].devices == up.stages[p - 1 - s].devices;
    if (!mirrored) {
      throw InvalidInput(
          fmt::format("schedule chimera: stage s of pipeline {} must be on the devices of stage p - 1 - s "
                      "of pipeline {}",
                      n + 1, n));
    }
    if (p % 2 != 0) {
      throw InvalidInput(fmt::format("schedule chimera needs an even number of stages; pipeline {} has {}", n, p));
    }
    const std::int64_t m = down.micro_batches + up.micro_batches;
    if (down.micro_batches != up.micro_batches || m % static_cast<std::int64_t>(p) != 0) {
      throw InvalidInput(
          fmt::format("schedule chimera needs micro-batches that are a multiple of the stages, half for each direction "
                      "(m mod p = 0); pipelines {} and {} have {} and {} for {} stages",
                      n, n + 1, down.micro_batches, up.micro_batches, p));
    }
  }
}

// The 1F1B order of every stage, consumed by whoever is first.
class Merge {
 public:
  Merge(const Plan& plan, const StageDag& dag, Columns columns)
      : dag_(dag),
        columns_(std::move(columns)),
        order_(plan),
        queues_(columns_.column_of.size()),
        next_(queues_.size(), 0) {
    for (int n = 0; n < static_cast<int>(plan.pipelines.size()); ++n) {
      const std::int64_t m = plan.pipelines[static_cast<std::size_t>(n)].micro_batches;
      const std::vector<std::int64_t> warmup = warmups(plan, n, dag, "chimera", m - 1);
      for (std::size_t s = 0; s < warmup.size(); ++s) {
        const auto flat = static_cast<std::size_t>(flat_index(plan, {n, static_cast<int>(s)}));
        for (std::int64_t k = 0; k < m + warmup[s]; ++k) {
          if (k < m)
            queues_[flat].push_back(
                {ComputeKind::forward, static_cast<std::int32_t>(flat), static_cast<std::int32_t>(k)});
          if (k >= warmup[s]) {
            queues_[flat].push_back(
                {ComputeKind::backward, static_cast<std::int32_t>(flat), static_cast<std::int32_t>(k - warmup[s])});
          }
        }
        left_ += queues_[flat].size();
        forward_end_.emplace_back(static_cast<std::size_t>(m), kNever);
        backward_end_.emplace_back(static_cast<std::size_t>(m), kNever);
      }
    }
    free_.assign(columns_.columns.size(), 0);
  }

  // Always takes what starts earliest of all devices: then nothing that is decided later could have come before it.
  ComputeOrder run() {
    for (; left_ > 0; --left_) {
      std::int32_t best = -1;
      double earliest = kNever;
      for (std::size_t s = 0; s < queues_.size(); ++s) {
        if (next_[s] == queues_[s].size()) continue;
        const double start = std::max(free_[column(s)], ready(queues_[s][next_[s]]));
        const auto flat = static_cast<std::int32_t>(s);
        if (start < earliest || (start == earliest && start < kNever && deeper(flat, best))) {
          earliest = start;
          best = flat;
        }
      }
      if (best < 0) throw Error(ExitCode::internal, "chimera: the merged orders wait for each other");
      take(static_cast<std::size_t>(best), earliest);
    }
    return std::move(order_);
  }

 private:
  std::size_t column(std::size_t s) const { return static_cast<std::size_t>(columns_.column_of[s]); }
  bool deeper(std::int32_t a, std::int32_t b) const {
    return dag_.depth_from_end[static_cast<std::size_t>(a)] < dag_.depth_from_end[static_cast<std::size_t>(b)];
  }
  double hop(std::size_t producer, std::size_t consumer) const {
    return column(producer) == column(consumer) ? 0 : columns_.costs[producer].hop;
  }

  double ready(const ComputeAction& action) const {
    const auto s = static_cast<std::size_t>(action.stage);
    const auto k = static_cast<std::size_t>(action.micro_batch);
    double time = 0;
    if (action.kind == ComputeKind::forward) {
      for (const std::int32_t before : dag_.predecessors[s]) {
        time = std::max(time,
                        forward_end_[static_cast<std::size_t>(before)][k] + hop(static_cast<std::size_t>(before), s));
      }
      return time;
    }
    for (const std::int32_t after : dag_.successors[s]) {
      time =
          std::max(time, backward_end_[static_cast<std::size_t>(after)][k] + hop(s, static_cast<std::size_t>(after)));
    }
    return std::max(time, forward_end_[s][k]);
  }

  void take(std::size_t s, double start) {
    const ComputeAction action = queues_[s][next_[s]++];
    const StageCost& cost = columns_.costs[s];
    const bool forward = action.kind == ComputeKind::forward;
    const double end = start + (forward ? cost.forward : cost.backward_input + cost.backward_weight);
    (forward ? forward_end_ : backward_end_)[s][static_cast<std::size_t>(action.micro_batch)] = end;
    free_[column(s)] = end;
    order_.lane(action.stage).add(action.kind, action.micro_batch);
  }

  const StageDag& dag_;
  Columns columns_;
  ComputeOrder order_;
  std::vector<std::vector<ComputeAction>> queues_;  // by stage
  std::vector<std::size_t> next_;
  std::vector<std::vector<double>> forward_end_;  // [stage][micro-batch]
  std::vector<std::vector<double>> backward_end_;
  std::vector<double> free_;  // by column
  std::size_t left_ = 0;
};

}  // namespace

ComputeOrder chimera(const Plan& plan, const StageDag& dag, const StageCosts& costs, const config::Values&) {
  require_no_warmup(plan, "chimera");
  require_pairs(plan);
  return Merge(plan, dag, make_columns(plan, costs, "chimera")).run();
}

}  // namespace millrace::schedules
