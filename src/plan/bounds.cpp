// Bounds of the objectives that are not times, and the choice among all.
#include "plan/bounds.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/limits.h"
#include "graph/footprint.h"
#include "plan/closed_form.h"
#include "plan/published.h"
#include "plan/time_bound.h"

namespace millrace::plan {
namespace {

constexpr double kRounding = 1e-9;  // relative: of sums in another order

double bytes_of(const Problem& problem, std::span<const TensorId> ids) {
  Bytes bytes;
  for (const TensorId id : ids) bytes += tensor_bytes(problem.graph->tensor(id), problem.sizes.real);
  return static_cast<double>(bytes.value());
}

// Weights, gradients and optimizer state of what an operator owns, as plan::AnalyticBytes counts them. Where programs
// are judged, gradients may lie in each other's place, and an optimizer may be in as many parts as there are devices.
double state_bytes(const Problem& problem, Judge judge, std::span<const TensorId> parameters,
                   std::span<const TensorId> buffers) {
  double elements = 0;
  for (const TensorId id : parameters) elements += static_cast<double>(parameter_elements(problem.graph->tensor(id)));
  const double values = bytes_of(problem, parameters) + bytes_of(problem, buffers);
  const double parts = problem.sizes.shard_optimizer ? problem.cluster->size() : 1;
  return (judge == Judge::closed_form ? 2 : 1) * values +
         elements * static_cast<double>(problem.sizes.optimizer_per_parameter) / parts;
}

// Bytes below which the fullest device cannot be.
double least_peak(const Problem& problem, Judge judge) {
  const Graph& graph = *problem.graph;
  double largest = 0;
  for (const Operator& op : graph.operators())
    largest = std::max(largest, state_bytes(problem, judge, op.parameters, op.buffers));
  double all = state_bytes(problem, judge, graph.parameters(), graph.buffers());
  if (judge == Judge::closed_form && problem.recompute == Recompute::none) {
    std::vector<OpId> ops(static_cast<std::size_t>(graph.size()));
    std::iota(ops.begin(), ops.end(), 0);
    const std::int64_t rows = (problem.batch + problem.micro_batches - 1) / problem.micro_batches;
    const std::int64_t live = schedule_traits(problem.schedule).needed(problem.micro_batches, 1, 1);
    all += static_cast<double>(live * rows) *
           static_cast<double>(saved_bytes_per_sample(graph, ops, problem.sizes.real).value());
  }
  return std::max(largest, all / problem.cluster->size());
}

std::optional<Bound> memory_efficiency_bound(const Problem& problem, Judge judge) {
  const Bound time = iteration_bound(problem, judge);
  const double peak = least_peak(problem, judge);
  if (time.value <= 0 || peak <= 0) return std::nullopt;
  return Bound{static_cast<double>(problem.batch) / time.value / (peak / kGiB), time.source + "; least peak memory"};
}

// Parts of the graph that no tensor joins.
int components(const Graph& graph) {
  std::vector<OpId> leader(static_cast<std::size_t>(graph.size()));
  std::iota(leader.begin(), leader.end(), 0);
  const auto find = [&](OpId op) {
    while (leader[static_cast<std::size_t>(op)] != op) {
      OpId& above = leader[static_cast<std::size_t>(op)];
      op = above = leader[static_cast<std::size_t>(above)];
    }
    return op;
  };
  int count = static_cast<int>(graph.size());
  for (OpId op = 0; op < graph.size(); ++op) {
    for (const TensorId input : graph.op(op).inputs) {
      const OpId producer = graph.tensor(input).producer;
      if (producer < 0) continue;
      const OpId a = find(op), b = find(producer);
      if (a == b) continue;
      leader[static_cast<std::size_t>(a)] = b;
      --count;
    }
  }
  return count;
}

// In a connected graph each stage exchanges a tensor with another, all rows of it, and its gradient; parameters are
// summed over all their owners by a ring. Linear in the number of stages but for its ends.
Bound communication_bound(const Problem& problem) {
  const Graph& graph = *problem.graph;
  const double parameters = bytes_of(problem, graph.parameters()) + bytes_of(problem, graph.buffers());
  double fewest_parameters = parameters, smallest = INFINITY;
  for (const Operator& op : graph.operators()) {
    fewest_parameters = std::min(fewest_parameters, bytes_of(problem, op.parameters) + bytes_of(problem, op.buffers));
    for (const TensorId output : op.outputs) {
      if (!graph.consumers(output).empty()) smallest = std::min(smallest, bytes_of(problem, {&output, 1}));
    }
  }
  const int parts = components(graph), devices = problem.cluster->size();
  const double tensor = std::isfinite(smallest) ? smallest * static_cast<double>(problem.batch) : 0.0;
  const bool split = problem.tensor != nullptr;  // then each pipeline holds the parameters once, however it is cut
  const auto bytes = [&](int pipelines, int stages) {
    if (split) return 2.0 * (pipelines - 1) * parameters + 2.0 * std::max(0, stages - parts) * tensor;
    if (stages == 1) return 2.0 * (devices - 1) * parameters;
    return 2.0 * (pipelines - 1) * parameters + 2.0 * (devices - pipelines * stages) * fewest_parameters +
           2.0 * std::max(0, stages - parts) * tensor;
  };
  double least = INFINITY;
  const int first = problem.pipelines.value_or(1), last = problem.pipelines.value_or(devices);
  for (int pipelines = first; pipelines <= last; ++pipelines) {
    const auto most = static_cast<int>(std::min<std::int64_t>(devices / pipelines, graph.size()));
    if (problem.stages) {
      if (*problem.stages <= most) least = std::min(least, bytes(pipelines, *problem.stages));
      continue;
    }
    for (const int stages : {1, std::min(2, most), std::clamp(parts, 1, std::max(1, most)), most}) {
      if (stages >= 1) least = std::min(least, bytes(pipelines, stages));
    }
  }
  return {std::isfinite(least) ? least : 0.0, "smallest tensors and parameters"};
}

}  // namespace

std::optional<Bound> proven_bound(const Problem& problem, Judge judge) {
  switch (problem.objective) {
    case Objective::throughput:
      return iteration_bound(problem, judge);
    case Objective::bottleneck: {
      Bound bound = steady_bound(problem);
      bound.value /= static_cast<double>(problem.batch);
      return bound;
    }
    case Objective::memory_efficiency:
      return memory_efficiency_bound(problem, judge);
    case Objective::communication:
      return communication_bound(problem);
    default:
      return Bound{published_bound(problem), "relaxed formula of the planner"};
  }
}

double bound_at(Objective objective, double value, double bound) {
  const bool passed = objective == Objective::memory_efficiency ? value > bound : value < bound;
  return passed && std::abs(value - bound) <= kRounding * std::abs(bound) ? value : bound;
}

std::optional<double> optimality_gap(Objective objective, double value, double bound) {
  const double over = objective == Objective::memory_efficiency ? bound - value : value - bound;
  const double base = objective == Objective::memory_efficiency ? value : bound;
  if (over == 0) return 0.0;
  if (base <= 0 || !std::isfinite(over)) return std::nullopt;
  return over < 0 && over >= -kRounding * base ? 0.0 : over / base;
}

std::optional<double> lower_bound(const Problem& problem) {
  if (problem.objective != Objective::throughput && problem.objective != Objective::bottleneck) return std::nullopt;
  return proven_bound(problem)->value;
}

}  // namespace millrace::plan
