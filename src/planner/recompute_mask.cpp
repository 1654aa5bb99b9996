// Whole stages, given operators, or the shortest list that fits.
#include "planner/recompute_mask.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "graph/footprint.h"

namespace millrace::planner {
namespace {

bool set_all_but_last(Plan& plan) {
  for (Pipeline& pipeline : plan.pipelines) {
    for (Stage& stage : pipeline.stages) stage.recompute = &stage == &pipeline.stages.back() ? OpList{} : stage.ops;
  }
  return true;
}

bool set_given(Plan& plan, const std::vector<OpId>& ops) {
  for (Pipeline& pipeline : plan.pipelines) {
    for (Stage& stage : pipeline.stages) {
      std::vector<OpId> its;
      std::set_intersection(stage.ops.begin(), stage.ops.end(), ops.begin(), ops.end(), std::back_inserter(its));
      stage.recompute = OpList(std::move(its));
    }
  }
  return true;
}

// Those with the most bytes saved a second first; what keeps nothing is left out.
std::vector<OpId> by_worth(const Stage& stage, const plan::Problem& problem, std::int64_t rows) {
  std::vector<std::pair<double, OpId>> worth;
  for (const OpId op : stage.ops) {
    const auto bytes = saved_bytes_per_sample(*problem.graph, std::span(&op, 1), problem.sizes.real).value();
    if (bytes == 0) continue;
    const double seconds = problem.cost->op_time(op, rows, stage.devices.front()).forward.value();
    worth.emplace_back(-static_cast<double>(bytes) / std::max(seconds, 1e-12), op);
  }
  std::sort(worth.begin(), worth.end());
  std::vector<OpId> ops;
  for (const auto& [value, op] : worth) ops.push_back(op);
  return ops;
}

OpList first_of(const std::vector<OpId>& ops, std::size_t count) {
  std::vector<OpId> list(ops.begin(), ops.begin() + static_cast<std::ptrdiff_t>(count));
  std::sort(list.begin(), list.end());
  return list;
}

// Equal stages of all pipelines alike.
void set_alike(Plan& plan, const OpList& ops, const OpList& recompute) {
  for (Pipeline& pipeline : plan.pipelines) {
    for (Stage& stage : pipeline.stages) {
      if (stage.ops == ops && !stage.recompute.empty()) stage.recompute = recompute;
    }
  }
}

// Stage by stage: the shortest list with which the plan still fits (METHODS 3, chosen recompute).
bool choose(const plan::Problem& problem, plan::Evaluator& evaluate, plan::Candidate& candidate) {
  if (!candidate.report.feasible) return false;
  bool changed = false;
  const auto pipelines = static_cast<int>(candidate.plan.pipelines.size());
  std::vector<OpList> done;
  for (int p = 0; p < pipelines; ++p) {
    for (const Stage& stage : Pipeline(candidate.plan.pipelines[static_cast<std::size_t>(p)]).stages) {
      if (stage.recompute.empty() || std::find(done.begin(), done.end(), stage.ops) != done.end()) continue;
      done.push_back(stage.ops);
      const std::vector<OpId> ops = by_worth(stage, problem, problem.micro_batch_rows(pipelines));
      Plan plan = candidate.plan;
      const auto fits = [&](std::size_t count) {
        Plan with = candidate.plan;
        set_alike(with, stage.ops, first_of(ops, count));
        if (!evaluate.evaluate(with).feasible) return false;
        plan = std::move(with);
        return true;
      };
      std::size_t low = 0, high = ops.size();  // bisected; the last that fitted is taken
      if (!fits(high)) continue;
      while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        if (fits(middle)) {
          high = middle;
        } else {
          low = middle + 1;
        }
      }
      candidate.plan = std::move(plan);
      changed = true;
    }
  }
  return changed;
}

}  // namespace

bool apply(const RecomputeMask& mask, const plan::Problem& problem, plan::Evaluator& evaluate,
           plan::Candidate& candidate) {
  switch (mask.kind) {
    case RecomputeMask::Kind::all_but_last:
      return set_all_but_last(candidate.plan);
    case RecomputeMask::Kind::given:
      return set_given(candidate.plan, mask.ops);
    case RecomputeMask::Kind::chosen:
      return choose(problem, evaluate, candidate);
    case RecomputeMask::Kind::as_cut:
      break;
  }
  return false;
}

}  // namespace millrace::planner
