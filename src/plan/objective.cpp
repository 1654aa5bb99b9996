// Names, units and the ranking of plans.
#include "plan/objective.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/errors.h"
#include "base/text.h"

namespace millrace::plan {
namespace {

// Sums in another order differ in the last digits: that makes no plan better.
constexpr double kRelativeTie = 1e-12;

int compare(double a, double b) {
  if (std::abs(a - b) <= kRelativeTie * std::max(std::abs(a), std::abs(b))) return 0;
  return a < b ? -1 : 1;
}

double spread(const PlanReport& report) {
  double least = INFINITY, most = 0;
  for (const StageReport& stage : report.stages) {
    const double time = stage.forward_s + stage.backward_s;
    least = std::min(least, time);
    most = std::max(most, time);
  }
  return report.stages.empty() ? 0.0 : most - least;
}

std::vector<OpId> cuts(const Plan& plan) {
  std::vector<OpId> all;
  for (const Pipeline& pipeline : plan.pipelines) {
    for (const Stage& stage : pipeline.stages) all.push_back(stage.ops.empty() ? -1 : stage.ops.back());
  }
  return all;
}

}  // namespace

const std::vector<std::string>& objective_names() {
  static const std::vector<std::string> names{"throughput", "bottleneck", "memory_efficiency", "communication",
                                              "max_load",   "time_per_sample", "pipedream", "dapple"};
  return names;
}

std::string_view name(Objective objective) { return objective_names()[static_cast<std::size_t>(objective)]; }

std::string_view unit(Objective objective) {
  switch (objective) {
    case Objective::throughput: return "s";
    case Objective::bottleneck: return "s/sample";
    case Objective::memory_efficiency: return "samples/s/GiB";
    case Objective::communication: return "bytes";
    case Objective::max_load: return "unit of the file";
    case Objective::time_per_sample: return "s/sample";
    case Objective::pipedream: return "s/mini-batch";
    case Objective::dapple: return "s";
  }
  return "";
}

Objective objective_by_name(std::string_view word) {
  const auto& names = objective_names();
  const auto found = std::find(names.begin(), names.end(), word);
  if (found == names.end()) throw InvalidInput(unknown_name("objective", word, names));
  return static_cast<Objective>(found - names.begin());
}

double value_of(Objective objective, const PlanReport& report) {
  switch (objective) {
    case Objective::throughput: return report.iteration_time_s;
    case Objective::bottleneck:
      return report.bottleneck_s * static_cast<double>(report.micro_batches) / static_cast<double>(report.batch);
    case Objective::memory_efficiency: return report.memory_efficiency;
    case Objective::communication: return static_cast<double>(report.bytes_injected);
    case Objective::max_load:
    case Objective::time_per_sample:
    case Objective::pipedream:
    case Objective::dapple: return report.objective_value.value_or(std::numeric_limits<double>::infinity());
  }
  return 0;
}

bool better(Objective objective, const Candidate& a, const Candidate& b) {
  if (a.report.feasible != b.report.feasible) return a.report.feasible;
  int order = compare(value_of(objective, a.report), value_of(objective, b.report));
  if (objective == Objective::memory_efficiency) order = -order;
  if (order == 0 && objective != Objective::throughput) {
    order = compare(a.report.iteration_time_s, b.report.iteration_time_s);
  }
  if (order == 0) order = compare(spread(a.report), spread(b.report));
  if (order != 0) return order < 0;
  if (a.report.bytes_injected != b.report.bytes_injected) return a.report.bytes_injected < b.report.bytes_injected;
  return cuts(a.plan) < cuts(b.plan);
}

}  // namespace millrace::plan
