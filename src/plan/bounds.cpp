// Work against speed, and the operator that cannot be split.
#include "plan/bounds.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace millrace::plan {
namespace {

// Devices that differ, one of each kind, and how many there are of it.
struct DeviceKind {
  int device = 0;
  int count = 0;
};

std::vector<DeviceKind> device_kinds(const cluster::Cluster& cluster) {
  std::vector<DeviceKind> kinds;
  for (int device = 0; device < cluster.size(); ++device) {
    const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const DeviceKind& kind) {
      return cluster.device(kind.device) == cluster.device(device);
    });
    if (found == kinds.end()) {
      kinds.push_back({device, 1});
    } else {
      ++found->count;
    }
  }
  return kinds;
}

// Seconds of an iteration below which the devices cannot do all the work: every operator's rows, done as one large
// micro-batch on the device that is best for it, shared out by the best speed that each device shows on any operator.
double work_bound(const Problem& problem, const std::vector<DeviceKind>& kinds) {
  std::vector<double> speed(kinds.size(), 0.0);
  double work = 0;
  for (OpId op = 0; op < problem.graph->size(); ++op) {
    std::vector<double> times;
    for (const DeviceKind& kind : kinds) {
      times.push_back(problem.cost->op_time(op, problem.batch, kind.device).total().value());
    }
    const double fastest = *std::min_element(times.begin(), times.end());
    work += fastest;
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      speed[k] = std::max(speed[k], times[k] > 0 ? fastest / times[k] : 1.0);
    }
  }
  double total_speed = 0;
  for (std::size_t k = 0; k < kinds.size(); ++k) total_speed += speed[k] * kinds[k].count;
  return work / total_speed;
}

// Seconds for one pipeline's part of the batch of the longest operator, when no stage can have a second replica.
double operator_bound(const Problem& problem, const std::vector<DeviceKind>& kinds) {
  const bool replicas_off = problem.pipelines && problem.stages &&
                            *problem.stages >= problem.devices_per_pipeline(*problem.pipelines);
  if (!replicas_off) return 0;
  const std::int64_t rows = problem.batch / *problem.pipelines;  // pipelines have equal shares or one has more
  double longest = 0;
  for (OpId op = 0; op < problem.graph->size(); ++op) {
    double fastest = INFINITY;
    for (const DeviceKind& kind : kinds) {
      fastest = std::min(fastest, problem.cost->op_time(op, rows, kind.device).total().value());
    }
    longest = std::max(longest, fastest);
  }
  return longest;
}

}  // namespace

std::optional<double> lower_bound(const Problem& problem) {
  if (problem.objective != Objective::throughput && problem.objective != Objective::bottleneck) return std::nullopt;
  const std::vector<DeviceKind> kinds = device_kinds(*problem.cluster);
  const double iteration = std::max(work_bound(problem, kinds), operator_bound(problem, kinds));
  // No device does more than micro-batches × the bottleneck in an iteration.
  return problem.objective == Objective::throughput ? iteration : iteration / static_cast<double>(problem.batch);
}

}  // namespace millrace::plan
