// Relaxes all starts until nothing changes: slow, and without a notion of events.
#include "tests/schedules/reference_run.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace millrace::test {
namespace {

using Point = std::tuple<bool, std::int32_t, std::int32_t>;  // forward?, stage, micro-batch

}  // namespace

std::int64_t ReferenceRun::longest_span() const { return *std::max_element(spans.begin(), spans.end()); }

ReferenceRun reference_run(const Plan& plan, const StageDag& dag, const ComputeOrder& order, const UnitTimes& times) {
  const auto rank_of = [&](std::int32_t stage) { return stage_at(plan, stage).devices.front(); };
  std::map<Point, std::int64_t> ends;
  ReferenceRun run;
  const std::size_t ranks = order.ranks().size();
  std::vector<std::size_t> next(ranks, 0);
  std::vector<std::int64_t> now(ranks, 0), first(ranks, -1), busy(ranks, 0);
  bool moved = true;
  while (moved) {
    moved = false;
    for (std::size_t r = 0; r < ranks; ++r) {
      while (next[r] < order.ranks()[r].size()) {
        const ComputeAction& action = order.ranks()[r][next[r]];
        std::vector<Point> sources;
        const bool forward = action.kind == ComputeKind::forward;
        if (forward) {
          for (const std::int32_t s : dag.predecessors[static_cast<std::size_t>(action.stage)]) {
            sources.emplace_back(true, s, action.micro_batch);
          }
        } else if (action.kind == ComputeKind::backward_weight) {
          sources.emplace_back(false, action.stage, action.micro_batch);
        } else {
          sources.emplace_back(true, action.stage, action.micro_batch);
          for (const std::int32_t s : dag.successors[static_cast<std::size_t>(action.stage)]) {
            sources.emplace_back(false, s, action.micro_batch);
          }
        }
        std::int64_t start = now[r];
        bool ready = true;
        for (const Point& source : sources) {
          const auto end = ends.find(source);
          ready = ready && end != ends.end();
          if (!ready) break;
          const bool crosses = rank_of(std::get<1>(source)) != rank_of(action.stage);
          start = std::max(start, end->second + (crosses ? times.hop : 0));
        }
        if (!ready) break;
        const std::int64_t length = forward                                      ? times.forward
                                    : action.kind == ComputeKind::backward_input ? times.backward_input
                                    : action.kind == ComputeKind::backward_weight
                                        ? times.backward_weight
                                        : times.backward_input + times.backward_weight;
        if (first[r] < 0) first[r] = start;
        now[r] = start + length;
        busy[r] += length;
        if (action.kind != ComputeKind::backward_weight) ends[{forward, action.stage, action.micro_batch}] = now[r];
        ++next[r];
        moved = true;
      }
    }
  }
  run.ends = true;
  for (std::size_t r = 0; r < ranks; ++r) {
    run.ends = run.ends && next[r] == order.ranks()[r].size();
    run.makespan = std::max(run.makespan, now[r]);
    run.spans.push_back(now[r] - first[r]);
    int live = 0;
    int peak = 0;
    for (const ComputeAction& action : order.ranks()[r]) {
      if (action.kind == ComputeKind::forward) peak = std::max(peak, ++live);
      if (action.kind == ComputeKind::backward || action.kind == ComputeKind::backward_weight) --live;
    }
    run.peaks.push_back(peak);
  }
  for (std::size_t r = 0; r < ranks; ++r) run.idle.push_back(run.makespan - busy[r]);
  return run;
}

}  // namespace millrace::test
