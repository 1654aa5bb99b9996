// Goes through schedules, micro-batches and partitioners, then sorts.
#include "planner/search.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "partitioners/registry.h"
#include "plan/explicit_stages.h"

namespace millrace::planner {
namespace {

class Search {
 public:
  Search(const Request& request, const MakeEvaluator& make_evaluator)
      : request_(request), make_evaluator_(make_evaluator) {}

  Ranking run() {
    const std::vector<std::int64_t> counts =
        request_.micro_batches.empty() ? automatic_micro_batches(request_.problem) : request_.micro_batches;
    for (const std::string& schedule : request_.schedules) {
      for (const std::int64_t micro_batches : counts) cell(schedule, micro_batches);
    }
    const plan::Objective objective = request_.problem.objective;
    std::stable_sort(ranking_.plans.begin(), ranking_.plans.end(),
                     [&](const auto& a, const auto& b) { return plan::better(objective, a, b); });
    if (ranking_.plans.size() > request_.top) ranking_.plans.resize(request_.top);
    if (!ranking_.plans.empty()) ranking_.least_memory.reset();
    return std::move(ranking_);
  }

 private:
  void cell(const std::string& schedule, std::int64_t micro_batches) {
    plan::Problem problem = request_.problem;
    problem.schedule = schedule;
    problem.micro_batches = micro_batches;
    const std::unique_ptr<plan::Evaluator> evaluate = make_evaluator_(problem);
    if (request_.explicit_stages) {
      take(problem, "explicit", [&] { return plan::explicit_stages(problem, *request_.explicit_stages, *evaluate); });
      return;
    }
    for (const PartitionerChoice& choice : request_.partitioners) {
      const partitioners::Entry& entry = partitioners::by_name(choice.name);
      take(problem, choice.name, [&] { return entry.partition(problem, choice.options, *evaluate); });
    }
  }

  void take(const plan::Problem& problem, const std::string& partitioner,
            const std::function<plan::PlanSet()>& partition) {
    const auto start = std::chrono::steady_clock::now();
    plan::PlanSet plans = partition();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    for (plan::Candidate& candidate : plans.candidates()) {
      candidate.report.planning_time_s = seconds;
      if (candidate.report.feasible) {
        ranking_.plans.push_back(std::move(candidate));
      } else {
        too_large(candidate, plans);
      }
    }
    for (plan::Refused& refused : plans.refusals()) {
      refused.partitioner = partitioner;
      refused.schedule = problem.schedule;
      refused.micro_batches = problem.micro_batches;
      ranking_.refusals.push_back(std::move(refused));
    }
  }

  void too_large(const plan::Candidate& candidate, plan::PlanSet& plans) {
    const Bytes peak(candidate.report.peak_memory_bytes);
    ranking_.least_memory = std::min(ranking_.least_memory.value_or(peak), peak);
    plans.refuse(candidate.report.pipelines, static_cast<int>(candidate.plan.pipelines.front().stages.size()),
                 plan::Refusal::memory_exceeded, candidate.report.why_not);
  }

  const Request& request_;
  const MakeEvaluator& make_evaluator_;
  Ranking ranking_;
};

}  // namespace

std::unique_ptr<plan::Evaluator> closed_form(const plan::Problem& problem) {
  return std::make_unique<plan::ClosedFormEvaluator>(problem);
}

std::vector<std::int64_t> automatic_micro_batches(const plan::Problem& problem) {
  std::vector<std::int64_t> counts;
  const std::int64_t rows = problem.batch / problem.pipelines.value_or(1);
  for (std::int64_t count = 1; count <= std::max<std::int64_t>(1, rows); count *= 2) counts.push_back(count);
  return counts;
}

Ranking search(const Request& request, const MakeEvaluator& make_evaluator) {
  return Search(request, make_evaluator).run();
}

std::string Ranking::why_not() const {
  if (!plans.empty()) return "";
  std::string text = "no plan fits";
  if (least_memory) {
    text += fmt::format("; the smallest memory that one of them fits in is {} ({} bytes)", format(*least_memory),
                        least_memory->value());
  }
  // Each reason once, with its first example.
  std::vector<plan::Refusal> told;
  for (const plan::Refused& refused : refusals) {
    if (std::find(told.begin(), told.end(), refused.reason) != told.end()) continue;
    told.push_back(refused.reason);
    text += fmt::format("\n  {}: {}{}", refused.partitioner, plan::text(refused.reason),
                        refused.detail.empty() ? "" : fmt::format(": {}", refused.detail));
  }
  return text;
}

}  // namespace millrace::planner
