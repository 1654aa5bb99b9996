// Bisects the limit, which is the same on every device.
#include "planner/least_memory.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "partitioners/registry.h"
#include "planner/virtual_stages.h"
#include "schedules/registry.h"

namespace millrace::planner {
namespace {

// Whether a plan depends on the limit however it was cut: by what is run again, or how its schedule deals and orders.
bool fitted_to_limits(const Request& request) {
  return request.problem.recompute != plan::Recompute::none ||
         std::any_of(request.schedules.begin(), request.schedules.end(), [](const ScheduleChoice& choice) {
           const schedules::Entry& entry = schedules::by_name(choice.name);
           return deals_stages(entry) || (entry.capabilities & schedules::kFitsCosts) != 0;
         });
}

}  // namespace

std::optional<Bytes> least_limit(const plan::Problem& problem) {
  std::optional<Bytes> least;
  for (int device = 0; device < problem.cluster->size(); ++device) {
    const std::optional<Bytes> limit = problem.memory_of(device);
    if (limit) least = std::min(least.value_or(*limit), *limit);
  }
  return least;
}

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
  least.minimal = true;
  if (!fitted_to_limits(request)) {
    std::erase_if(again.partitioners, [](const PartitionerChoice& choice) {
      return (partitioners::by_name(choice.name).capabilities & partitioners::kMemoryLimit) == 0;
    });
    if (again.partitioners.empty() || request.explicit_stages) return least;
  }
  least.minimal = false;
  if (one_search > request.patience) return least;
  const cluster::Cluster cluster = without_limits(*request.problem.cluster);
  again.problem.cluster = &cluster;
  again.problem.exchange = nullptr;  // the other ranks do not look for it
  again.top = 1;

  // What devices hold may be more than the bytes that the search counted.
  // With the smallest limit that there is on every device no plan fits either.
  std::int64_t low = least_limit(request.problem).value_or(Bytes(0)).value(), high = least.limit.value();
  const auto best_under = [&](std::int64_t limit) -> std::optional<plan::Candidate> {
    again.problem.memory_limit = Bytes(limit);
    Ranking ranking = plans_under(again, make_evaluator);
    if (ranking.plans.empty()) return std::nullopt;
    plan::Candidate best = std::move(ranking.plans.front());
    if (request.device_memory) {
      if (const auto held = request.device_memory(best.plan)) take_memory(*held, best.report);
    }
    return best;
  };
  const auto start = std::chrono::steady_clock::now();
  if (request.device_memory) {
    const auto known_best = best_under(high);
    if (known_best) high = std::max(high, known_best->report.peak_memory_bytes);
    least.limit = Bytes(high);
  }
  if (4 * one_search > request.patience) return least;
  least.minimal = true;
  while (high - low > 1) {
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > request.patience.value()) {
      least.minimal = false;
      break;
    }
    const std::int64_t middle = low + (high - low) / 2;
    const std::optional<plan::Candidate> best = best_under(middle);
    if (!best || best->report.peak_memory_bytes > middle) low = middle;
    if (!best || best->report.peak_memory_bytes >= high) continue;
    // Devices may also hold less than was counted: what they hold is a limit only if the search finds a plan under it.
    const std::int64_t held = best->report.peak_memory_bytes;
    const auto tight = held < middle ? best_under(held) : std::nullopt;
    const bool enough = held >= middle || (tight && tight->report.peak_memory_bytes <= held);
    if (!enough) low = std::max(low, held);
    high = enough ? held : middle;
    least.limit = Bytes(high);
    least.stage = fullest_stage(best->report);
  }
  return least;
}

}  // namespace millrace::planner
