// Estimates everything, refines what is promising, and asks the evaluator.
#include "partitioners/common/order_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "partitioners/common/dealt_plan.h"

namespace millrace::partitioners {
namespace {

Deadline in(Seconds time) {
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(time.value()));
}

bool has_limits(const plan::Problem& problem) {
  for (int device = 0; device < problem.cluster->size(); ++device) {
    if (problem.memory_of(device)) return true;
  }
  return false;
}

}  // namespace

OrderSearch::OrderSearch(const plan::Problem& problem, plan::Evaluator& evaluate, Settings settings)
    : problem_(&problem),
      evaluate_(&evaluate),
      settings_(std::move(settings)),
      deadline_(in(settings_.time_limit)),
      search_(problem, settings_.thinning, deadline_),
      bytes_(*problem.graph, problem.sizes,
             has_limits(problem) || problem.objective == plan::Objective::memory_efficiency),
      limited_(has_limits(problem)),
      digest_(problem.graph->digest()) {}

// Whether a plan of every number of pipelines is too much to make and judge.
bool OrderSearch::large() const {
  constexpr double kMuch = 5e5;
  return static_cast<double>(problem_->graph->size()) * problem_->cluster->size() > kMuch;
}

std::vector<plan::Shape> OrderSearch::shapes() {
  std::vector<plan::Shape> shapes;
  for (const plan::Shape& shape : plan::allowed_pipelines(*problem_, plans_)) {
    if (problem_->stages && *problem_->stages > shape.devices) {
      plans_.refuse(shape.pipelines, *problem_->stages, plan::Refusal::more_stages_than_devices,
                    fmt::format("{} stages on {} devices of a pipeline", *problem_->stages, shape.devices));
    } else if (problem_->stages && *problem_->stages > problem_->graph->size()) {
      plans_.refuse(shape.pipelines, *problem_->stages, plan::Refusal::more_stages_than_operators,
                    fmt::format("{} stages of {} operators", *problem_->stages, problem_->graph->size()));
    } else {
      shapes.push_back(shape);
    }
  }
  return shapes;
}

// `shape`: of the pipelines with the most stages.
void OrderSearch::order(const plan::Shape& shape) {
  const int stages = problem_->stages.value_or(shape.devices);
  sequences_ =
      make_sequences(*problem_->graph, bytes_, search_.times(), stages, settings_.topological, settings_.cluster);
}

std::optional<plan::Candidate> OrderSearch::first() {
  const std::vector<plan::Shape> all = shapes();
  if (all.empty()) return std::nullopt;
  order(all.front());
  for (const plan::Shape& shape : all) {
    const std::vector<DeviceDeal> dealt = deals(*problem_, shape.pipelines, search_.speeds());
    Task task{&shape, &dealt.front(), sequences_.front().get()};
    task.cut = search_.estimate(*task.sequence, *task.deal, {}, true);
    if (auto candidate = task.cut ? fitting(task) : std::nullopt) return candidate;
  }
  return std::nullopt;
}

plan::PlanSet OrderSearch::run() {
  const std::vector<plan::Shape> all = shapes();
  if (all.empty()) return std::move(plans_);
  order(all.front());
  std::vector<std::vector<DeviceDeal>> dealt;
  for (const plan::Shape& shape : all) dealt.push_back(deals(*problem_, shape.pipelines, search_.speeds()));
  std::vector<Task> tasks;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const DeviceDeal& deal : dealt[i]) {
      for (const auto& sequence : sequences_) tasks.push_back({&all[i], &deal, sequence.get()});
    }
  }
  estimate(tasks);
  const auto by_score = [](const Task& a, const Task& b) {
    if (a.cut.has_value() != b.cut.has_value()) return a.cut.has_value();
    return a.cut && a.cut->score < b.cut->score;
  };
  std::stable_sort(tasks.begin(), tasks.end(), by_score);
  for (const plan::Shape& shape : all) {
    std::vector<Task> own;
    for (const Task& task : tasks) {
      if (task.shape == &shape) own.push_back(task);
    }
    if (large() && &shape != tasks.front().shape) {
      plans_.refuse(shape.pipelines, problem_->stages.value_or(0), plan::Refusal::not_offered,
                    "the estimate of another number of pipelines is better");
      continue;
    }
    choose(shape, own);
  }
  if (late()) {  // what came next was not looked at
    for (plan::Candidate& candidate : plans_.candidates()) candidate.report.stopped_by = "time";
  }
  return std::move(plans_);
}

// Where all is large, the orders are compared in the most promising number of pipelines only.
void OrderSearch::estimate(std::vector<Task>& tasks) {
  const auto look_at = [&](Task& task) {
    if (!late()) task.cut = search_.estimate(*task.sequence, *task.deal, {}, large());
  };
  if (!large()) {
    std::for_each(tasks.begin(), tasks.end(), look_at);
    return;
  }
  const plan::Shape* best = tasks.front().shape;
  Score least{};
  for (Task& task : tasks) {
    if (task.sequence != sequences_.front().get()) continue;
    look_at(task);
    if (!task.cut || task.cut->score >= least) continue;
    least = task.cut->score;
    best = task.shape;
  }
  for (Task& task : tasks) {
    if (task.shape == best && !task.cut) look_at(task);
  }
}

void OrderSearch::choose(const plan::Shape& shape, std::vector<Task>& tasks) {
  constexpr double kPromising = 1.1;
  constexpr std::size_t kMost = 4;
  std::optional<plan::Candidate> best;
  const auto keep = [&](std::optional<plan::Candidate> candidate) {
    if (!candidate) return;
    if (!best || plan::better(problem_->objective, *candidate, *best)) best = std::move(candidate);
  };
  std::size_t looked_at = 0;
  const bool efficiency = problem_->objective == plan::Objective::memory_efficiency;
  for (Task& task : tasks) {
    if (!task.cut || looked_at == (large() ? 1 : kMost)) break;
    if (!efficiency && task.cut->score.first > kPromising * tasks.front().cut->score.first) break;
    ++looked_at;
    keep(efficiency ? efficient(task) : fitting(task));
  }
  if (!best && !late()) keep(smallest(tasks.front()));
  if (best) {
    plans_.add(std::move(*best));
  } else {
    plans_.refuse(shape.pipelines, problem_->stages.value_or(0),
                  late() ? plan::Refusal::time_limit : plan::Refusal::not_offered, "");
  }
}

std::optional<OrderCut> OrderSearch::cut(const Task& task, const MemoryRules& rules) {
  auto found = search_.estimate(*task.sequence, *task.deal, rules);
  if (found) found = search_.refine(*task.sequence, *task.deal, rules, std::move(*found));
  return found;
}

// What passes through a stage is estimated: where the evaluator finds a plan too large, more room is left free.
std::optional<plan::Candidate> OrderSearch::fitting(Task& task) {
  constexpr int kTries = 4;
  MemoryRules rules;
  std::optional<OrderCut> found = search_.refine(*task.sequence, *task.deal, rules, std::move(*task.cut));
  for (int attempt = 0; found && attempt < kTries; ++attempt) {
    plan::Candidate candidate = judged(task, *found);
    if (candidate.report.feasible) {
      if (attempt == 0) prove(task, *found, candidate.report);
      return candidate;
    }
    rules.margin += excess(candidate.report);
    found = late() ? std::nullopt : cut(task, rules);
  }
  return std::nullopt;
}

// HIPPIE's objective (METHODS 6): T(M) is the best time with at most M bytes on each device; batch / T(M) / M is
// largest at one of the memories that fastest plans have. Each cap is just below the last plan's memory, and at least a
// part of the first's, so that all such plans are met where there are few and quantiles of them where there are many.
std::optional<plan::Candidate> OrderSearch::efficient(Task& task) {
  MemoryRules rules;
  std::optional<plan::Candidate> best;
  std::optional<OrderCut> found = search_.refine(*task.sequence, *task.deal, rules, std::move(*task.cut));
  double first = 0;
  for (int cap = 0; found && cap < settings_.caps; ++cap) {
    plan::Candidate candidate = judged(task, *found);
    const auto peak = static_cast<double>(candidate.report.peak_memory_bytes);
    if (cap == 0) first = peak;
    const double step = found->exact ? 1.0 : first / settings_.caps;
    rules.cap = std::min(rules.cap, peak) - step;
    if (candidate.report.feasible && (!best || plan::better(problem_->objective, candidate, *best))) {
      best = std::move(candidate);
    }
    found = late() ? std::nullopt : cut(task, rules);
  }
  return best;
}

// Nothing fits: the plan with the lowest cap found for which there is one, whose figures say what is needed.
std::optional<plan::Candidate> OrderSearch::smallest(Task& task) {
  if (!limited_) return std::nullopt;
  constexpr double kClose = 1.02;
  MemoryRules rules;
  rules.limited = false;
  std::optional<plan::Candidate> best;
  double low = 0, high = INFINITY;  // caps: of which nothing fits, of which something does
  for (auto found = cut(task, rules); !late();) {
    if (found) {
      plan::Candidate candidate = judged(task, *found);
      const auto peak = static_cast<double>(candidate.report.peak_memory_bytes);
      high = std::min({high, peak, rules.cap});
      if (!best || peak < static_cast<double>(best->report.peak_memory_bytes)) best = std::move(candidate);
    } else {
      if (high == INFINITY) break;
      low = rules.cap;
    }
    if (high <= kClose * std::max(low, 1.0)) break;
    rules.cap = low > 0 ? std::sqrt(low * high) : high / 2;
    found = cut(task, rules);
  }
  return best;
}

plan::Candidate OrderSearch::judged(const Task& task, const OrderCut& cut) {
  plan::Candidate candidate{
      dealt_plan(*problem_, digest_, task.sequence->order(), *task.deal, cut.cut, search_.speeds()), {}};
  candidate.report = evaluate_->evaluate(candidate.plan);
  candidate.report.partitioner = settings_.partitioner;
  candidate.report.order = task.sequence->name();
  return candidate;
}

// On a chain every convex cut is one of the order: with one pipeline of equal devices on one node and no operator run
// again, the smallest bottleneck of the order is that of the problem.
void OrderSearch::prove(const Task& task, const OrderCut& cut, plan::PlanReport& report) const {
  if (!cut.exact || problem_->objective != plan::Objective::bottleneck || problem_->pipelines.value_or(0) != 1) return;
  if (problem_->recompute != plan::Recompute::none || task.deal->queues() != 1 ||
      problem_->cluster->nodes().size() != 1 || late())
    return;
  for (int device = 1; device < problem_->cluster->size(); ++device) {
    if (problem_->cluster->first_alike(device) != 0) return;
  }
  const OpEdges edges = successors(*problem_->graph);
  for (OpId op = 0; op + 1 < problem_->graph->size(); ++op) {
    const auto next = edges.of(op);
    if (next.empty() || next[0] != op + 1) return;
  }
  if (!report.objective_value || *report.objective_value <= report.bound.value_or(0)) return;
  report.bound = report.objective_value;
  report.bound_source = "exact on a chain";
  report.optimality_gap = 0;
  report.certificate = fmt::format("the best of all plans: {:.4g} {}", *report.objective_value, report.objective_unit);
}

// Bytes by which the fullest device is over its limit.
double OrderSearch::excess(const plan::PlanReport& report) const {
  double most = 0;
  for (const plan::StageReport& stage : report.stages) {
    for (const int device : stage.devices) {
      const auto limit = problem_->memory_of(device);
      if (limit) most = std::max(most, static_cast<double>(stage.memory_bytes - limit->value()));
    }
  }
  return most + 1;
}

config::Options order_options() {
  return {
      {"order", "order of operators to cut: by Kahn's algorithm, by clusters and branches, or both",
       config::OneOf{{"topological", "cluster", "best"}}, "best"},
      {"thinning", "relative step between candidate bottlenecks", config::Real{0.0, 0.1}, "0.001"},
      {"time_limit", "stop after this long and return the best so far", config::Duration{}, "10 s"},
  };
}

OrderSearch::Settings order_settings(std::string partitioner, const config::Values& options) {
  OrderSearch::Settings settings;
  settings.partitioner = std::move(partitioner);
  settings.topological = options.text("order") != "cluster";
  settings.cluster = options.text("order") != "topological";
  settings.thinning = options.real("thinning");
  settings.time_limit = options.duration("time_limit");
  return settings;
}

}  // namespace millrace::partitioners
