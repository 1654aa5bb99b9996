// Bisects the limit, which is the same on every device.
#include "planner/least_memory.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "partitioners/registry.h"

namespace millrace::planner {
namespace {

// The smallest limit of a device: with so little on every device no plan fits either.
std::int64_t too_little(const plan::Problem& problem) {
  std::optional<Bytes> least;
  for (int device = 0; device < problem.cluster->size(); ++device) {
    const auto limit = problem.memory_of(device);
    if (limit) least = std::min(least.value_or(*limit), *limit);
  }
  return least ? least->value() : 0;
}

}  // namespace

cluster::Cluster without_limits(const cluster::Cluster& from) {
  std::vector<cluster::Device> devices = from.devices();
  for (cluster::Device& device : devices) device.memory.reset();
  std::vector<int> node_of;
  for (int device = 0; device < from.size(); ++device) node_of.push_back(from.node_of(device));
  return cluster::Cluster(from.name(), from.kind(), std::move(devices), std::move(node_of), from.nodes(),
                          from.network(), from.emulated());
}

LeastMemory least_memory(const Request& request, const LeastMemory& known, Seconds one_search,
                         const MakeEvaluator& make_evaluator) {
  LeastMemory least = known;
  Request again = request;
  std::erase_if(again.partitioners, [](const PartitionerChoice& choice) {
    return (partitioners::by_name(choice.name).capabilities & partitioners::kMemoryLimit) == 0;
  });
  least.minimal = true;
  if (again.partitioners.empty() || request.explicit_stages) return least;
  if (4 * one_search > request.patience) {
    least.minimal = false;
    return least;
  }
  const cluster::Cluster cluster = without_limits(*request.problem.cluster);
  again.problem.cluster = &cluster;
  again.problem.exchange = nullptr;  // the other ranks do not look for it
  again.top = 1;

  const auto start = std::chrono::steady_clock::now();
  std::int64_t low = too_little(request.problem), high = least.limit.value();
  while (high - low > 1) {
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > request.patience.value()) {
      least.minimal = false;
      break;
    }
    const std::int64_t middle = low + (high - low) / 2;
    again.problem.memory_limit = Bytes(middle);
    const Ranking ranking = plans_under(again, make_evaluator);
    if (ranking.plans.empty()) {
      low = middle;
      continue;
    }
    const plan::PlanReport& report = ranking.plans.front().report;
    high = report.peak_memory_bytes;
    least.limit = Bytes(high);
    least.stage = fullest_stage(report);
  }
  return least;
}

}  // namespace millrace::planner
