// First plans by equal cuts, then the best of each topological order, then all ideals: each bounds the next.
#include "partitioners/exact.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/limits.h"
#include "partitioners/common/equal_cuts.h"
#include "partitioners/common/first_plan.h"
#include "partitioners/common/ideals/search.h"
#include "partitioners/common/max_load/exact.h"
#include "partitioners/common/published.h"
#include "plan/assignment.h"
#include "plan/bounds.h"
#include "plan/shapes.h"

namespace millrace::partitioners {
namespace {

constexpr double kTie = 1e-9;  // relative: sums in another order

using Clock = std::chrono::steady_clock;

bool equal_but_for_rounding(double a, double b) { return std::abs(a - b) <= kTie * std::max(std::abs(a), std::abs(b)); }

class Solver {
 public:
  Solver(const plan::Problem& problem, const config::Values& options, Clock::time_point deadline,
         plan::Evaluator& evaluate)
      : problem_(problem),
        evaluate_(evaluate),
        closed_form_(problem),
        most_ideals_(options.integer("max_ideals")),
        deadline_(deadline),
        successors_(successors(*problem.graph)),
        orders_(topological_orders(*problem.graph, successors_)) {}

  plan::PlanSet run() {
    const auto lattice =
        ideals::Lattice::of(*problem_.graph, successors_, static_cast<std::size_t>(most_ideals_), deadline_);
    const bool too_large = !lattice && !late();
    for (const plan::Shape& shape : plan::allowed_pipelines(problem_, plans_)) {
      if (problem_.stages && *problem_.stages > shape.devices) {
        refuse(shape, plan::Refusal::more_stages_than_devices,
               fmt::format("{} stages on {} devices of a pipeline", *problem_.stages, shape.devices));
      } else if (problem_.stages && *problem_.stages > problem_.graph->size()) {
        refuse(shape, plan::Refusal::more_stages_than_operators,
               fmt::format("{} stages of {} operators", *problem_.stages, problem_.graph->size()));
      } else if (too_large) {
        refuse(shape, plan::Refusal::too_large, fmt::format("more than {} ideals (max_ideals)", most_ideals_));
      } else {
        solve(shape, lattice ? &*lattice : nullptr);
      }
    }
    certify();
    return std::move(plans_);
  }

 private:
  // A plan, its value by closed form in the unit of the search, and whether the memory that the evaluator sees is the
  // counted one that the search went by.
  struct Judged {
    plan::Candidate candidate;
    double value = kNever;
    bool counted = true;
  };

  void refuse(const plan::Shape& shape, plan::Refusal reason, std::string detail) {
    plans_.refuse(shape.pipelines, problem_.stages.value_or(0), reason, std::move(detail));
  }

  bool late() const { return Clock::now() > deadline_; }

  double value_of(const plan::PlanReport& report) const {
    return problem_.objective == plan::Objective::bottleneck ? report.bottleneck_s : report.iteration_time_s;
  }

  Judged judged(const plan::Shape& shape, const std::vector<plan::StageCut>& cuts) {
    Judged result;
    result.candidate.plan = plan::assign(problem_, shape.pipelines, cuts, plan::Shares::by_speed);
    result.candidate.report = evaluate_.evaluate(result.candidate.plan);
    const plan::PlanReport closed = closed_form_.evaluate(result.candidate.plan);
    result.value = value_of(closed);
    for (std::size_t s = 0; s < closed.stages.size(); ++s) {
      result.counted =
          result.counted && closed.stages[s].memory_bytes == result.candidate.report.stages[s].memory_bytes;
    }
    return result;
  }

  // Of plans that fit the fastest is kept, of others the one nearest to fitting.
  void consider(Judged next) {
    std::optional<Judged>& kept = next.candidate.report.feasible ? best_ : nearest_;
    const auto key = [](const Judged& judged) {
      const plan::PlanReport& report = judged.candidate.report;
      return report.feasible ? judged.value : static_cast<double>(report.peak_memory_bytes);
    };
    if (!kept || key(next) < key(*kept)) kept = std::move(next);
  }

  // `lattice`: null where time was up before there was one.
  void solve(const plan::Shape& shape, const ideals::Lattice* lattice) {
    best_.reset();
    nearest_.reset();
    stopped_by_ = lattice != nullptr ? "complete" : "time";
    if (!late() || found_.empty()) equal_cut_plans(shape);
    double proven = 0;
    if (lattice != nullptr) {
      for (const Order& order : orders_) {
        if (!late()) search(shape, ideals::Lattice::of(*problem_.graph, order), true);
      }
      proven = search(shape, *lattice, false);
    }
    bounds_.push_back(proven);
    if (best_) {
      best_->candidate.report.partitioner = "exact";
      best_->candidate.report.stopped_by = stopped_by_;
      found_.push_back(std::move(*best_));
    } else if (stopped_by_ != "complete" || !nearest_) {
      refuse(shape, plan::Refusal::time_limit, "");
    } else {
      refuse(shape, plan::Refusal::memory_exceeded, "proven: no plan of equal pipelines fits");
      nearest_->candidate.report.partitioner = "exact";
      found_.push_back(std::move(*nearest_));
    }
  }

  void equal_cut_plans(const plan::Shape& shape) {
    std::vector<double> times;
    for (const OpId op : orders_.front()) {
      times.push_back(problem_.cost->op_time(op, problem_.micro_batch_rows(shape.pipelines), 0).total().value());
    }
    const auto most = static_cast<int>(std::min<std::int64_t>(shape.devices, problem_.graph->size()));
    for (int stages = problem_.stages.value_or(1); stages <= problem_.stages.value_or(most); stages *= 2) {
      consider(judged(
          shape, stage_cuts(orders_.front(), equal_cuts(times, stages), plan::even_replicas(shape.devices, stages))));
    }
  }

  // Looks for something better than the best plan so far; the value below which the lattice has none, 0 if it was not
  // searched to the end. The bytes that a device reports may exceed the counted ones: then more room is left free.
  double search(const plan::Shape& shape, const ideals::Lattice& lattice, bool partial) {
    ideals::Stages stages(problem_, shape.pipelines, lattice);
    ideals::Limits limits;
    limits.deadline = deadline_;
    constexpr int kTries = 4;
    for (int attempt = 0; attempt < kTries; ++attempt) {
      const double incumbent = best_ ? best_->value : kNever;
      const ideals::Answer answer = ideals::Search(problem_, lattice, stages, limits).run(incumbent);
      if (!answer.complete && !partial) stopped_by_ = late() ? "time" : "number of states";
      const double proven = answer.complete && limits.memory_margin == 0 ? answer.value : 0.0;
      if (answer.cuts.empty()) return proven;
      Judged next = judged(shape, answer.cuts);
      const bool fits = next.candidate.report.feasible;
      if (!fits) limits.memory_margin += excess(next.candidate.report);
      consider(std::move(next));
      if (fits) return proven;
    }
    return 0;
  }

  std::int64_t excess(const plan::PlanReport& report) const {
    std::int64_t most = 0;
    for (const plan::StageReport& stage : report.stages) {
      for (const int device : stage.devices) {
        if (const auto limit = problem_.memory_of(device)) {
          most = std::max(most, stage.memory_bytes - limit->value());
        }
      }
    }
    return most + 1;
  }

  // The best of the class is the least of all numbers of pipelines; it bounds all plans where there are no others.
  void certify() {
    double proven = kNever;
    for (const double value : bounds_) proven = std::min(proven, value);
    for (Judged& judged : found_) {
      plan::PlanReport& report = judged.candidate.report;
      const bool limited = std::any_of(report.stages.begin(), report.stages.end(), [&](const plan::StageReport& stage) {
        return problem_.memory_of(stage.devices[0]).has_value();
      });
      if (proven > 0 && report.feasible && equal_but_for_rounding(value_of(report), judged.value) &&
          (judged.counted || !limited)) {
        const double scale = problem_.objective == plan::Objective::bottleneck
                                 ? static_cast<double>(problem_.micro_batches) / static_cast<double>(problem_.batch)
                                 : 1.0;
        const double best = equal_but_for_rounding(judged.value, proven) ? *report.objective_value : proven * scale;
        report.certificate = fmt::format("the best of {}: {:.4g} {}", class_text(), best, report.objective_unit);
        if (all_plans()) {
          report.bound = best;
          report.bound_source = "exact optimum";
          report.optimality_gap = plan::optimality_gap(problem_.objective, *report.objective_value, best);
        }
      }
      plans_.add(std::move(judged.candidate));
    }
  }

  // Two pipelines need two rows for each micro-batch.
  bool one_pipeline() const {
    return problem_.pipelines.value_or(problem_.cluster->size()) == 1 || problem_.batch < 2 * problem_.micro_batches;
  }

  bool devices_alike() const {
    const cluster::Cluster& cluster = *problem_.cluster;
    bool alike = cluster.nodes().size() == 1;
    for (int device = 1; device < cluster.size(); ++device) {
      alike = alike && cluster.device(device) == cluster.device(0);
    }
    return alike;
  }

  bool all_plans() const { return one_pipeline() && devices_alike() && problem_.recompute == plan::Recompute::none; }

  std::string class_text() const {
    if (all_plans()) return "all plans";
    std::string text = one_pipeline() ? "all plans with one pipeline" : "all plans with equal pipelines";
    if (!devices_alike()) text += " in the cluster's order of devices";
    if (problem_.recompute != plan::Recompute::none) text += ", without recomputation";
    return text;
  }

  const plan::Problem& problem_;
  plan::Evaluator& evaluate_;
  plan::ClosedFormEvaluator closed_form_;
  std::int64_t most_ideals_;
  Clock::time_point deadline_;
  OpEdges successors_;
  std::vector<Order> orders_;
  plan::PlanSet plans_;
  std::vector<double> bounds_;  // of each number of pipelines
  std::vector<Judged> found_;
  // Of the shape at hand.
  std::optional<Judged> best_, nearest_;
  std::string stopped_by_;
};

plan::PlanSet not_offered(const plan::Problem& problem, std::string detail) {
  plan::PlanSet plans;
  plans.refuse(problem.pipelines.value_or(0), problem.stages.value_or(0), plan::Refusal::not_offered,
               std::move(detail));
  return plans;
}

}  // namespace

config::Options exact_options() {
  return {
      {"max_ideals", "graphs with more down-closed sets of operators are refused", config::Integer{2, 100'000'000},
       "50000"},
      {"time_limit", "stop after this long and return the best so far", config::Duration{}, "60 s"},
  };
}

plan::PlanSet exact(const plan::Problem& problem, const config::Values& options, plan::Evaluator& evaluate) {
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(options.duration("time_limit").value()));
  switch (problem.objective) {
    case plan::Objective::max_load:
      return max_load_exact(problem, deadline, evaluate);
    case plan::Objective::time_per_sample:
    case plan::Objective::pipedream: {
      plan::PlanSet plans = *published_plans(problem, options, evaluate);
      for (plan::Candidate& candidate : plans.candidates()) candidate.report.partitioner = "exact";
      return plans;
    }
    case plan::Objective::throughput:
    case plan::Objective::bottleneck:
      break;
    default:
      return not_offered(problem, fmt::format("no exact search for objective {}", plan::name(problem.objective)));
  }
  const auto form = plan::schedule_traits(problem.schedule).iteration_time;
  if (form != plan::gpipe_time && form != plan::one_f_one_b_time) {
    return not_offered(problem, fmt::format("no exact search for the closed form of {}", problem.schedule));
  }
  if (problem.recompute == plan::Recompute::all) return not_offered(problem, "plans without recomputation only");
  return with_first_plan(problem, evaluate, "exact", Solver(problem, options, deadline, evaluate).run());
}

}  // namespace millrace::partitioners
