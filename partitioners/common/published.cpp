// Runs the search of the objective and puts its answer into a plan.
#include "partitioners/common/published.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "partitioners/common/dapple/search.h"
#include "partitioners/common/max_load/linear.h"
#include "partitioners/common/pipedream/search.h"
#include "partitioners/common/piper/search.h"
#include "plan/bounds.h"
#include "plan/published.h"
#include "plan/published/dapple.h"

namespace millrace::partitioners {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSameValue = 1e-12;  // relative

Clock::time_point deadline_of(const config::Values& options) {
  const std::chrono::duration<double> limit(options.duration("time_limit").value());
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(limit);
}

class Answer {
 public:
  Answer(const plan::Problem& problem, plan::Evaluator& evaluate) : problem_(problem), evaluate_(evaluate) {}

  /// An empty plan to fill.
  Plan plan(std::int64_t micro_batches) const {
    Plan plan;
    plan.model = problem_.graph->name();
    plan.graph_digest = problem_.graph->digest();
    plan.schedule = problem_.schedule;
    plan.bucket_size = problem_.bucket_size;
    plan.pipelines.emplace_back().micro_batches = micro_batches;
    return plan;
  }

  /// `bound`: what the search proved, if that is more than the cheap bound.
  void add(Plan plan, double bound, bool late) {
    plan::Candidate candidate{std::move(plan), {}};
    candidate.report = evaluate_.evaluate(candidate.plan);
    plan::PlanReport& report = candidate.report;
    report.partitioner = "dp";
    report.stopped_by = late ? "time" : "complete";
    if (report.feasible && report.objective_value && bound > report.bound.value_or(0)) {
      // Sums in another order differ in the last digits.
      const bool proven = *report.objective_value <= bound * (1 + kSameValue);
      report.bound = proven ? *report.objective_value : bound;
      report.bound_source = proven ? "exact optimum" : "relaxed search";
      report.optimality_gap = plan::optimality_gap(problem_.objective, *report.objective_value, *report.bound);
    }
    plans_.add(std::move(candidate));
  }

  void refuse(int pipelines, int stages, plan::Refusal reason, std::string detail) {
    plans_.refuse(pipelines, stages, reason, std::move(detail));
  }

  /// Refuses shapes that the objective does not know; false then.
  bool one_pipeline_of_any_depth() {
    if (problem_.pipelines.value_or(1) == 1 && !problem_.stages) return true;
    refuse(problem_.pipelines.value_or(0), problem_.stages.value_or(0), plan::Refusal::not_offered,
           fmt::format("objective {}: one pipeline, whose stages are chosen", name(problem_.objective)));
    return false;
  }

  plan::PlanSet take() { return std::move(plans_); }

 private:
  const plan::Problem& problem_;
  plan::Evaluator& evaluate_;
  plan::PlanSet plans_;
};

Stage replicated(OpList ops, std::vector<int> devices) {
  Stage stage;
  stage.ops = std::move(ops);
  stage.shares.assign(devices.size(), 1.0 / static_cast<double>(devices.size()));
  stage.devices = std::move(devices);
  return stage;
}

plan::PlanSet pipedream_plans(const plan::Problem& problem, Clock::time_point deadline, plan::Evaluator& evaluate) {
  Answer answer(problem, evaluate);
  if (!answer.one_pipeline_of_any_depth()) return answer.take();
  PipedreamPlan found = pipedream_search(problem, deadline);
  if (found.stages.empty()) {
    answer.refuse(1, 0, found.late ? plan::Refusal::time_limit : plan::Refusal::memory_exceeded, "");
    return answer.take();
  }
  Plan plan = answer.plan(problem.micro_batches);
  for (std::size_t s = 0; s < found.stages.size(); ++s) {
    plan.pipelines[0].stages.push_back(replicated(std::move(found.stages[s]), std::move(found.devices[s])));
  }
  answer.add(std::move(plan), found.bound, found.late);
  return answer.take();
}

plan::PlanSet piper_plans(const plan::Problem& problem, Clock::time_point deadline, plan::Evaluator& evaluate) {
  Answer answer(problem, evaluate);
  if (!answer.one_pipeline_of_any_depth()) return answer.take();
  PiperPlan found = piper_search(problem, deadline);
  if (found.stages.empty()) {
    answer.refuse(1, 0, found.late ? plan::Refusal::time_limit : plan::Refusal::memory_exceeded, "");
    return answer.take();
  }
  Plan plan = answer.plan(problem.micro_batches);
  int device = 0;
  for (PiperStage& found_stage : found.stages) {
    Stage& stage = plan.pipelines[0].stages.emplace_back();
    stage.ops = std::move(found_stage.ops);
    stage.recompute = std::move(found_stage.recompute);
    stage.tensor_parallel = found_stage.tensor_parallel;
    stage.shares.assign(static_cast<std::size_t>(found_stage.replicas), 1.0 / found_stage.replicas);
    for (int i = 0; i < found_stage.replicas * found_stage.tensor_parallel; ++i) stage.devices.push_back(device++);
  }
  answer.add(std::move(plan), found.bound, found.late);
  return answer.take();
}

plan::PlanSet dapple_plans(const plan::Problem& problem, Clock::time_point deadline, plan::Evaluator& evaluate) {
  Answer answer(problem, evaluate);
  for (const int pipelines : problem.pipeline_counts()) {
    if (plan::dapple_micro_batches(problem, pipelines) > 0) continue;
    answer.refuse(pipelines, 0, plan::Refusal::not_offered,
                  fmt::format("{} rows are no whole number of micro-batches of {} rows in {} pipelines", problem.batch,
                              *problem.micro_batch_size, pipelines));
  }
  DapplePlan found = dapple_search(problem, deadline);
  if (found.stages.empty()) {
    if (found.late) answer.refuse(0, 0, plan::Refusal::time_limit, "");
    return answer.take();
  }
  Plan plan = answer.plan(found.micro_batches);
  const std::vector<OpList> ops(found.stages.begin(), found.stages.end());  // shared by the pipelines
  plan.pipelines.assign(static_cast<std::size_t>(found.pipelines), plan.pipelines[0]);
  for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
    plan.pipelines[p].share = 1.0 / found.pipelines;
    for (std::size_t s = 0; s < ops.size(); ++s) {
      plan.pipelines[p].stages.push_back(replicated(ops[s], std::move(found.devices[p][s])));
    }
  }
  answer.add(std::move(plan), found.bound, found.late);
  return answer.take();
}

}  // namespace

std::optional<plan::PlanSet> published_plans(const plan::Problem& problem, const config::Values& options,
                                             plan::Evaluator& evaluate) {
  const Clock::time_point deadline = deadline_of(options);
  switch (problem.objective) {
    case plan::Objective::max_load:
      return max_load_linear(problem, deadline, evaluate);
    case plan::Objective::pipedream:
      return pipedream_plans(problem, deadline, evaluate);
    case plan::Objective::time_per_sample:
      return piper_plans(problem, deadline, evaluate);
    case plan::Objective::dapple:
      return dapple_plans(problem, deadline, evaluate);
    default:
      return std::nullopt;
  }
}

}  // namespace millrace::partitioners
