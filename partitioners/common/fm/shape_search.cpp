// Divides shape after shape, each with its part of the time that is left.
#include "partitioners/common/fm/shape_search.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "partitioners/common/first_plan.h"
#include "partitioners/common/offered.h"
#include "plan/assignment.h"
#include "plan/shapes.h"

namespace millrace::partitioners::fm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kJudged = 3;  // divisions of a shape that the evaluator compares
constexpr int kAttempts = 4;        // with more and more room left free on the devices

Clock::duration duration(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

class ShapeSearch {
 public:
  ShapeSearch(const plan::Problem& problem, const SearchSettings& settings, plan::Evaluator& evaluate,
              const Divide& divide)
      : problem_(problem),
        settings_(settings),
        evaluate_(evaluate),
        divide_(divide),
        end_(Clock::now() + duration(settings.time_limit.value())),
        successors_(successors(*problem.graph)),
        orders_(topological_orders(*problem.graph)) {
    if (problem.recompute != plan::Recompute::all) keeping_ = make_netlist(*problem.graph, problem.sizes, false);
    if (problem.recompute != plan::Recompute::none) recomputing_ = make_netlist(*problem.graph, problem.sizes, true);
  }

  plan::PlanSet run() {
    const std::vector<plan::Shape> shapes = plan::allowed_shapes(problem_, plans_);
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      best_.reset();
      const auto shapes_left = static_cast<int>(shapes.size() - i);
      if (keeping_) variant(shapes[i], false, recomputing_ ? 2 * shapes_left : shapes_left);
      if (recomputing_) variant(shapes[i], true, shapes_left);
      if (best_) {
        plans_.add(std::move(*best_));
      } else {
        plans_.refuse(shapes[i].pipelines, shapes[i].stages, plan::Refusal::time_limit);
      }
    }
    return std::move(plans_);
  }

 private:
  // One shape, all activations kept or all operators recomputed. It takes its part of the time left.
  void variant(const plan::Shape& shape, bool recomputed, int parts) {
    if (any_of_ranks(settings_.exchange, Clock::now() >= end_)) return;
    const Clock::time_point end = Clock::now() + (end_ - Clock::now()) / parts;
    Machine machine(problem_, recomputed ? *recomputing_ : *keeping_, shape, settings_.lambda, recomputed);
    const Task task{
        &problem_, {recomputed ? &*recomputing_ : &*keeping_, &machine.times(), &machine}, &successors_, &orders_};
    // Without a limit there is nothing to gain by recomputing some of the stages.
    if (recomputed && keeping_ && !machine.counts_memory()) return;
    std::vector<double> margins(static_cast<std::size_t>(shape.stages), 0.0);
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const Found found = divide_(task, end - reserve_);
      const plan::PlanReport report = judge(task, found, recomputed, end);
      // Where all had the time to judge alike, all agree on what comes next.
      const bool late = any_of_ranks(settings_.exchange, found.stopped || Clock::now() >= end);
      if (late || report.feasible || !machine.counts_memory()) break;
      // The workspace of a stage is not counted in the search: room for it is left free.
      for (std::size_t s = 0; s < margins.size(); ++s) {
        margins[s] = std::max(margins[s], static_cast<double>(report.stages[s].memory.workspace.value()));
        machine.set_margin(static_cast<int>(s), margins[s]);
      }
    }
  }

  // Keeps the best of the first few; returns the report of the first that fits, or of the first.
  plan::PlanReport judge(const Task& task, const Found& found, bool recomputed, Clock::time_point end) {
    plan::PlanReport told;
    const std::size_t count = std::min(found.divisions.size(), kJudged);
    for (std::size_t i = 0; i < count && (i == 0 || Clock::now() + reserve_ < end); ++i) {
      const auto start = Clock::now();
      plan::Candidate candidate{plan_of(found.divisions[i].stage_of, task, recomputed), {}};
      candidate.report = evaluate_.evaluate(candidate.plan);
      candidate.report.partitioner = settings_.partitioner;
      if (found.stopped) candidate.report.stopped_by = "time";
      reserve_ = std::max(reserve_, Clock::now() - start);
      if (i == 0 || (candidate.report.feasible && !told.feasible)) told = candidate.report;
      if (!best_ || plan::better(problem_.objective, candidate, *best_)) best_ = std::move(candidate);
    }
    return told;
  }

  Plan plan_of(const StageOf& stage_of, const Task& task, bool recomputed) const {
    const Machine& machine = *task.model.machine;
    std::vector<plan::StageCut> cuts(static_cast<std::size_t>(machine.stages()));
    for (std::size_t op = 0; op < stage_of.size(); ++op) {
      cuts[static_cast<std::size_t>(stage_of[op])].ops.push_back(static_cast<OpId>(op));
    }
    for (std::size_t s = 0; s < cuts.size(); ++s) cuts[s].replicas = machine.replicas()[s];
    Plan plan = plan::assign(problem_, machine.shape().pipelines, cuts, plan::Shares::by_speed);
    if (!recomputed) return plan;
    const std::vector<bool> fits = fit_as_they_are(stage_of, task);
    for (Pipeline& pipeline : plan.pipelines) {
      for (std::size_t s = 0; s < cuts.size(); ++s) {
        if (!fits[s]) pipeline.stages[s].recompute = pipeline.stages[s].ops;
      }
    }
    return plan;
  }

  // Stages that may keep their activations, where the problem leaves that open.
  std::vector<bool> fit_as_they_are(const StageOf& stage_of, const Task& task) const {
    const Machine& machine = *task.model.machine;
    std::vector<bool> fits(static_cast<std::size_t>(machine.stages()), false);
    if (!keeping_) return fits;
    const Labels kept({&*keeping_, &machine.times(), &machine}, stage_of);
    for (int s = 0; s < machine.stages(); ++s) {
      const auto i = static_cast<std::size_t>(s);
      fits[i] = machine.excess(s, kept.sums()[i]) <= 0;
    }
    return fits;
  }

  const plan::Problem& problem_;
  const SearchSettings& settings_;
  plan::Evaluator& evaluate_;
  const Divide& divide_;
  Clock::time_point end_;
  std::optional<Netlist> keeping_, recomputing_;
  OpEdges successors_;
  std::vector<Order> orders_;
  Clock::duration reserve_{};            // what judging a plan took at most
  std::optional<plan::Candidate> best_;  // of the shape at hand
  plan::PlanSet plans_;
};

}  // namespace

Division improved(const Task& task, const StageOf& stage_of, const Effort& effort, Deadline deadline) {
  Labels labels(task.model, stage_of);
  improve(labels, effort, deadline);
  return {labels.stage_of(), labels.value()};
}

plan::PlanSet search_shapes(const plan::Problem& problem, const SearchSettings& settings, plan::Evaluator& evaluate,
                            const Divide& divide) {
  if (auto refused = refused_if_published(problem)) return std::move(*refused);
  return with_first_plan(problem, evaluate, settings.partitioner,
                         ShapeSearch(problem, settings, evaluate, divide).run());
}

bool any_of_ranks(plan::Exchange* exchange, bool mine) {
  if (exchange == nullptr) return mine;
  const std::vector<std::string> said = exchange->gather_to_all(mine ? "1" : "0");
  return std::find(said.begin(), said.end(), "1") != said.end();
}

}  // namespace millrace::partitioners::fm
