// Sorts devices and deals them to the pipelines.
#include "partitioners/common/device_deal.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

namespace millrace::partitioners {
namespace {

constexpr std::size_t kMostQueues = 4;

// Position j of pipeline p is device p · (devices of a pipeline) + j: consecutive ones are neighbours.
std::vector<int> in_blocks(const std::vector<int>& devices, int pipelines) {
  const std::size_t each = devices.size() / static_cast<std::size_t>(pipelines);
  std::vector<int> queue;
  for (std::size_t j = 0; j < each; ++j) {
    for (std::size_t p = 0; p < static_cast<std::size_t>(pipelines); ++p) queue.push_back(devices[p * each + j]);
  }
  return queue;
}

// Positions whose devices are of the same kinds form a queue.
std::vector<std::vector<int>> by_kinds(const std::vector<int>& sorted, int pipelines, const cluster::Cluster& cluster) {
  std::map<std::vector<int>, std::size_t> known;
  std::vector<std::vector<int>> queues;
  for (std::size_t first = 0; first < sorted.size(); first += static_cast<std::size_t>(pipelines)) {
    const auto begin = sorted.begin() + static_cast<std::ptrdiff_t>(first);
    std::vector<int> of;
    for (int p = 0; p < pipelines; ++p) of.push_back(cluster.first_alike(begin[p]));
    std::sort(of.begin(), of.end());
    const auto found = known.try_emplace(std::move(of), queues.size()).first;
    if (found->second == queues.size()) queues.emplace_back();
    queues[found->second].insert(queues[found->second].end(), begin, begin + pipelines);
  }
  return queues;
}

}  // namespace

Counts DeviceDeal::counts() const {
  Counts all;
  for (std::size_t q = 0; q < queues_.size(); ++q) all.push_back(count(q));
  return all;
}

std::vector<int> DeviceDeal::devices(int pipeline, const Counts& behind, const Counts& taken) const {
  std::vector<int> result;
  for (std::size_t q = 0; q < queues_.size(); ++q) {
    const int end = count(q) - behind[q];
    for (int position = end - taken[q]; position < end; ++position) result.push_back(device(pipeline, q, position));
  }
  return result;
}

std::vector<DeviceDeal> deals(const plan::Problem& problem, int pipelines, std::span<const double> speeds) {
  const cluster::Cluster& cluster = *problem.cluster;
  std::vector<int> all(speeds.size());
  std::iota(all.begin(), all.end(), 0);
  std::map<int, std::vector<int>> of_kind;
  for (const int device : all) of_kind[cluster.first_alike(device)].push_back(device);
  const bool divide = std::all_of(of_kind.begin(), of_kind.end(), [&](const auto& item) {
    return item.second.size() % static_cast<std::size_t>(pipelines) == 0;
  });
  if (divide && of_kind.size() <= kMostQueues) {
    std::vector<std::vector<int>> queues;
    for (const auto& [kind, devices] : of_kind) queues.push_back(in_blocks(devices, pipelines));
    return {DeviceDeal(pipelines, std::move(queues))};
  }
  const auto sorted = [&](const std::function<double(int)>& key) {
    std::vector<int> devices = all;
    std::stable_sort(devices.begin(), devices.end(), [&](int a, int b) { return key(a) < key(b); });
    return devices;
  };
  const auto speed = [&](int device) { return speeds[static_cast<std::size_t>(device)]; };
  const std::vector<int> fastest_first = sorted([&](int device) { return -speed(device); });
  std::vector<std::vector<int>> queues = by_kinds(fastest_first, pipelines, cluster);
  if (queues.size() <= kMostQueues) return {DeviceDeal(pipelines, std::move(queues))};

  const auto memory = [&](int device) {
    const auto limit = problem.memory_of(device);
    return limit ? static_cast<double>(limit->value()) : std::numeric_limits<double>::infinity();
  };
  std::vector<DeviceDeal> result{DeviceDeal(pipelines, {fastest_first})};
  const auto add = [&](std::vector<int> queue) {
    DeviceDeal deal(pipelines, {std::move(queue)});
    if (std::find(result.begin(), result.end(), deal) == result.end()) result.push_back(std::move(deal));
  };
  add(sorted(speed));
  add(sorted([&](int device) { return -memory(device); }));
  add(in_blocks(all, pipelines));
  return result;
}

}  // namespace millrace::partitioners
