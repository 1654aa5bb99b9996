// The dynamic program of METHODS 6: for each order and number of pipelines, walks down the bottleneck t, takes the least
// Σc under it, and keeps the cut with the best closed form.
#include "partitioners/dp.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "partitioners/common/baseline.h"
#include "partitioners/common/equal_cuts.h"
#include "partitioners/common/pipeline_dp.h"
#include "partitioners/common/published.h"
#include "plan/assignment.h"

namespace millrace::partitioners {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// Steps of the inner loop for one bottleneck: what bounds the number of cut points on large clusters.
constexpr double kStepsPerPass = 2.5e6;
constexpr double kMostPoints = 400;
constexpr double kExactSteps = 5e4;  // below this every bottleneck is tried

// Judges the cuts of one model in turn and keeps the best.
class Choice {
 public:
  Choice(const plan::Problem& problem, plan::Evaluator& evaluate, const PipelineModel& model, const Order& order,
         const SegmentTable& table, int pipelines)
      : problem_(problem), evaluate_(evaluate), model_(model), order_(order), table_(table), pipelines_(pipelines) {}

  void consider(const PipelineCut& cut) {
    switch (problem_.objective) {
      case plan::Objective::throughput: return keep(cut, cut.iteration_time(model_.traits(), model_.micro_batches()));
      case plan::Objective::bottleneck: return keep(cut, cut.slowest);
      case plan::Objective::memory_efficiency: return keep(cut, -evaluate_.evaluate(plan(cut)).memory_efficiency);
      case plan::Objective::communication:
        return keep(cut, static_cast<double>(evaluate_.evaluate(plan(cut)).bytes_injected));
      default: return;  // those of published planners have searches of their own
    }
  }

  const std::optional<PipelineCut>& cut() const { return cut_; }
  double score() const { return score_; }

  Plan plan(const PipelineCut& cut) const {
    Cuts ends;
    for (const std::size_t end : cut.ends) ends.push_back(table_.points()[end]);
    return plan::assign(problem_, pipelines_, stage_cuts(order_, ends, cut.replicas), plan::Shares::by_speed);
  }

 private:
  void keep(const PipelineCut& cut, double score) {
    if (score >= score_) return;
    score_ = score;
    cut_ = cut;
  }

  const plan::Problem& problem_;
  plan::Evaluator& evaluate_;
  const PipelineModel& model_;
  const Order& order_;
  const SegmentTable& table_;
  int pipelines_;
  std::optional<PipelineCut> cut_;
  double score_ = kNever;
};

// Walks t down from `from` to `to` in relative steps and offers each cut. Skips bottlenecks that cannot win: with
// least Σc `least_sum`, a bottleneck t costs at least least_sum + (m−1) t.
class Walk {
 public:
  /// Gains below the relative `slack` are not worth a step.
  Walk(const plan::Problem& problem, const PipelineModel& model, PipelineDp& dp, Choice& choice, double slack,
       Deadline deadline)
      : prunes_(problem.objective == plan::Objective::throughput && !model.traits().splits_bottleneck),
        steps_(static_cast<double>(model.micro_batches() - 1)),
        least_(model.least_bottleneck()), slack_(slack), dp_(dp), choice_(choice), deadline_(deadline) {}

  void down(double from, double to, double step) {
    double t = from;
    while (t >= to) {
      const auto cut = dp_.solve(t, deadline_);
      if (!cut) return;
      const bool first = std::exchange(first_, false);
      if (first) least_sum_ = cut->sum;
      choice_.consider(*cut);
      if (prunes_ && cut->sum + steps_ * least_ >= choice_.score() * (1 - slack_)) {  // Σc only grows from here on
        settled_ = first;
        return;
      }
      const double reached = std::min(t, cut->slowest);
      t = step > 0 ? reached * (1 - step) : std::nextafter(reached, 0.0);
      if (prunes_ && steps_ > 0) t = std::min(t, (choice_.score() - least_sum_) / steps_);
    }
  }
  /// The cut of least Σc cannot be beaten under any bottleneck.
  bool settled() const { return settled_; }

 private:
  bool prunes_;
  bool settled_ = false;
  bool first_ = true;
  double steps_;
  double least_;
  double slack_;
  PipelineDp& dp_;
  Choice& choice_;
  Deadline deadline_;
  double least_sum_ = 0;
};

// A bottleneck above which no cut beats the one stage on all devices, which is offered first; Σc is at least max c, so
// an iteration takes at least m times the bottleneck.
double first_bottleneck(const plan::Problem& problem, const PipelineModel& model, PipelineDp& dp, Choice& choice) {
  const auto whole = dp.one_stage();
  if (!whole) return kNever;
  choice.consider(*whole);
  constexpr double kRounding = 1 + 1e-9;
  switch (problem.objective) {
    case plan::Objective::throughput:
      return whole->iteration_time(model.traits(), model.micro_batches()) /
             static_cast<double>(model.micro_batches()) * kRounding;
    case plan::Objective::bottleneck: return whole->slowest * kRounding;
    case plan::Objective::memory_efficiency:
    default: return kNever;
  }
  return kNever;
}

void search(const plan::Problem& problem, const PipelineModel& model, PipelineDp& dp, Choice& choice, double thinning,
            bool exact, Deadline deadline) {
  Walk walk(problem, model, dp, choice, exact ? 0.0 : thinning, deadline);
  const double start = first_bottleneck(problem, model, dp, choice);
  if (exact) return walk.down(start, 0, 0);
  // Coarse to fine around the best bottleneck.
  constexpr double kCoarse = 0.1;
  walk.down(start, 0, kCoarse);
  for (double step = kCoarse; choice.cut() && !walk.settled() && step > thinning;) {
    const double centre = choice.cut()->slowest, reach = step;
    step = std::max(thinning, step / 8);
    walk.down(centre * (1 + reach), centre * (1 - reach), step);
    if (thinning <= 0 && step < 1e-4) break;
  }
}

class Search {
 public:
  Search(const plan::Problem& problem, const config::Values& options, plan::Evaluator& evaluate)
      : problem_(problem), evaluate_(evaluate), thinning_(options.real("thinning")),
        deadline_(std::chrono::steady_clock::now() +
                  std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                      std::chrono::duration<double>(options.duration("time_limit").value()))) {}

  plan::PlanSet run() {
    const std::vector<Order> orders = topological_orders(*problem_.graph);
    for (const plan::Shape& shape : plan::allowed_pipelines(problem_, plans_)) {
      if (problem_.stages && *problem_.stages > shape.devices) {
        refuse(shape, plan::Refusal::more_stages_than_devices,
               fmt::format("{} stages on {} devices of a pipeline", *problem_.stages, shape.devices));
      } else if (problem_.stages && *problem_.stages > problem_.graph->size()) {
        refuse(shape, plan::Refusal::more_stages_than_operators,
               fmt::format("{} stages of {} operators", *problem_.stages, problem_.graph->size()));
      } else {
        best_.reset();
        for (const Order& order : orders) cut(order, shape);
        if (best_) plans_.add(std::move(*best_));
      }
    }
    return std::move(plans_);
  }

 private:
  void refuse(const plan::Shape& shape, plan::Refusal reason, std::string detail) {
    plans_.refuse(shape.pipelines, problem_.stages.value_or(0), reason, std::move(detail));
  }

  bool late() const { return std::chrono::steady_clock::now() > deadline_; }

  SegmentTable segments(const Order& order, const plan::Shape& shape) const {
    const double pairs = 0.5 * shape.devices * (shape.devices + 1);
    const double depth = problem_.stages.value_or(static_cast<int>(std::min<std::int64_t>(shape.devices,
                                                                                          problem_.micro_batches)));
    const auto most =
        static_cast<std::size_t>(std::min(kMostPoints, std::sqrt(kStepsPerPass / (0.3 * pairs * (1 + depth / 4)))));
    std::vector<double> times;
    for (const OpId op : order) {
      times.push_back(problem_.cost->op_time(op, problem_.micro_batch_rows(shape.pipelines), 0).total().value());
    }
    const std::size_t least = static_cast<std::size_t>(std::max(64, problem_.stages.value_or(1)));
    return SegmentTable(*problem_.graph, order, cut_points(*problem_.graph, order, times, std::max(most, least)),
                        problem_.sizes);
  }

  void cut(const Order& order, const plan::Shape& shape) {
    if (late()) return refuse(shape, plan::Refusal::time_limit, "");
    const SegmentTable table = segments(order, shape);
    const PipelineModel model(problem_, order, table, shape.pipelines);
    if (problem_.stages && static_cast<std::size_t>(*problem_.stages) > table.items()) {
      return refuse(shape, plan::Refusal::not_offered, "more stages than places to cut");
    }
    const auto items = static_cast<double>(table.items());
    const double steps = items * items * 0.5 * shape.devices * (shape.devices + 1) *
                         static_cast<double>(PipelineDp::depth(model, problem_.stages));
    // The workspace of a segment is estimated: where the evaluator finds a plan too large, more room is left free.
    constexpr int kTries = 4;
    double margin = 0;
    for (int attempt = 0; attempt < kTries; ++attempt) {
      PipelineDp dp(model, problem_.stages, margin);
      Choice choice(problem_, evaluate_, model, order, table, shape.pipelines);
      search(problem_, model, dp, choice, thinning_, steps <= kExactSteps, deadline_);
      if (!choice.cut()) break;
      plan::Candidate candidate = judged(choice.plan(*choice.cut()));
      if (candidate.report.feasible) return keep(std::move(candidate));
      margin += excess(candidate.report);
    }
    if (late()) return refuse(shape, plan::Refusal::time_limit, "");
    unlimited(order, shape, table);
  }

  // Of the orders, the one with the best plan is kept.
  void keep(plan::Candidate candidate) {
    if (!best_ || plan::better(problem_.objective, candidate, *best_)) best_ = std::move(candidate);
  }

  plan::Candidate judged(Plan plan) {
    plan::Candidate candidate{std::move(plan), {}};
    candidate.report = evaluate_.evaluate(candidate.plan);
    candidate.report.partitioner = "dp";
    candidate.report.order = "topological";
    if (late()) candidate.report.stopped_by = "time";
    return candidate;
  }

  // Bytes by which the fullest device is over its limit.
  double excess(const plan::PlanReport& report) const {
    double most = 0;
    for (const plan::StageReport& stage : report.stages) {
      for (const int device : stage.devices) {
        const auto limit = problem_.memory_of(device);
        if (limit) most = std::max(most, static_cast<double>(stage.memory_bytes - limit->value()));
      }
    }
    return most + 1;
  }

  // Nothing fits: the best plan without a limit, whose figures say which stage is too large and what would do.
  void unlimited(const Order& order, const plan::Shape& shape, const SegmentTable& table) {
    plan::Problem free = problem_;
    cluster::Cluster cluster = without_limits();
    free.cluster = &cluster;
    free.memory_limit.reset();
    const PipelineModel model(free, order, table, shape.pipelines);
    PipelineDp dp(model, free.stages, 0);
    const auto cut = dp.solve(kNever, deadline_);
    if (!cut) return refuse(shape, plan::Refusal::time_limit, "");
    Choice choice(problem_, evaluate_, model, order, table, shape.pipelines);
    keep(judged(choice.plan(*cut)));
  }

  cluster::Cluster without_limits() const {
    const cluster::Cluster& from = *problem_.cluster;
    std::vector<cluster::Device> devices = from.devices();
    for (cluster::Device& device : devices) device.memory.reset();
    std::vector<int> node_of;
    for (int device = 0; device < from.size(); ++device) node_of.push_back(from.node_of(device));
    return cluster::Cluster(from.name(), from.kind(), std::move(devices), std::move(node_of), from.nodes(),
                            from.network(), from.emulated());
  }

  const plan::Problem& problem_;
  plan::Evaluator& evaluate_;
  double thinning_;
  Deadline deadline_;
  std::optional<plan::Candidate> best_;  // of the shape at hand
  plan::PlanSet plans_;
};

}  // namespace

config::Options dp_options() {
  return {
      {"order", "order of operators to cut; best: all that there are", config::OneOf{{"topological", "best"}}, "best"},
      {"thinning", "relative step between candidate bottlenecks", config::Real{0.0, 0.1}, "0.001"},
      {"time_limit", "stop after this long and return the best so far", config::Duration{}, "10 s"},
  };
}

plan::PlanSet dp(const plan::Problem& problem, const config::Values& options, plan::Evaluator& evaluate) {
  if (auto plans = published_plans(problem, options, evaluate)) return std::move(*plans);
  return Search(problem, options, evaluate).run();
}

}  // namespace millrace::partitioners
