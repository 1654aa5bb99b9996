// The counts that a partitioner goes through.
#include "plan/problem.h"

#include <algorithm>

namespace millrace::plan {
namespace {

std::vector<int> divisors(int number) {
  std::vector<int> all;
  for (int d = 1; d <= number; ++d) {
    if (number % d == 0) all.push_back(d);
  }
  return all;
}

std::int64_t ceiling(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

std::vector<int> Problem::pipeline_counts() const {
  return pipelines ? std::vector<int>{*pipelines} : divisors(cluster->size());
}

std::vector<int> Problem::stage_counts(int devices) const {
  return stages ? std::vector<int>{*stages} : divisors(devices);
}

std::int64_t Problem::micro_batch_rows(int count) const { return ceiling(ceiling(batch, count), micro_batches); }

std::optional<Bytes> Problem::memory_of(int device) const {
  const std::optional<Bytes>& own = cluster->device(device).memory;
  if (!memory_limit || !own) return memory_limit ? memory_limit : own;
  return std::min(*memory_limit, *own);
}

std::vector<double> device_speeds(const Problem& problem) {
  const std::int64_t rows = problem.micro_batch_rows(1);
  std::vector<double> times;
  for (int device = 0; device < problem.cluster->size(); ++device) {
    // Equal devices are asked once: a cluster has few kinds.
    bool known = false;
    for (int earlier = 0; earlier < device && !known; ++earlier) {
      known = problem.cluster->device(earlier) == problem.cluster->device(device);
      if (known) times.push_back(times[static_cast<std::size_t>(earlier)]);
    }
    if (known) continue;
    Seconds total;
    for (OpId op = 0; op < problem.graph->size(); ++op) total += problem.cost->op_time(op, rows, device).total();
    times.push_back(total.value());
  }
  const double fastest = *std::min_element(times.begin(), times.end());
  std::vector<double> speeds;
  for (const double time : times) speeds.push_back(time > 0 ? fastest / time : 1.0);
  return speeds;
}

}  // namespace millrace::plan
