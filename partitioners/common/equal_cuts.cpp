// Even splits by weight and by count.
#include "partitioners/common/equal_cuts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace millrace::partitioners {

Cuts equal_cuts(std::span<const double> weights, int stages) {
  return proportional_cuts(weights, std::vector<double>(static_cast<std::size_t>(stages), 1.0));
}

Cuts proportional_cuts(std::span<const double> weights, std::span<const double> parts) {
  const auto stages = static_cast<int>(parts.size());
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  const double all_parts = std::accumulate(parts.begin(), parts.end(), 0.0);
  double parts_before = 0;
  Cuts cuts;
  std::size_t end = 0;
  double sum = 0;
  for (int s = 0; s < stages; ++s) {
    const std::size_t last_end = weights.size() - static_cast<std::size_t>(stages - 1 - s);  // one item for each later
    sum += weights[end++];  // at least one item, also where trailing items weigh nothing
    parts_before += parts[static_cast<std::size_t>(s)];
    const double target = total * parts_before / all_parts;
    while (end < last_end && std::abs(sum + weights[end] - target) <= std::abs(sum - target)) sum += weights[end++];
    if (s == stages - 1) end = weights.size();
    cuts.push_back(end);
  }
  return cuts;
}

Cuts even_cuts(std::size_t items, int stages) {
  const auto parts = static_cast<std::size_t>(stages);
  Cuts cuts;
  std::size_t end = 0;
  for (std::size_t s = 0; s < parts; ++s) {
    end += items / parts + (s < items % parts ? 1 : 0);
    cuts.push_back(end);
  }
  return cuts;
}

std::vector<plan::StageCut> stage_cuts(const Order& order, const Cuts& cuts, std::span<const int> replicas) {
  std::vector<plan::StageCut> stages;
  std::size_t begin = 0;
  for (std::size_t s = 0; s < cuts.size(); ++s) {
    plan::StageCut stage;
    stage.ops.assign(order.begin() + static_cast<std::ptrdiff_t>(begin),
                     order.begin() + static_cast<std::ptrdiff_t>(cuts[s]));
    stage.replicas = replicas[s];
    stages.push_back(std::move(stage));
    begin = cuts[s];
  }
  return stages;
}

}  // namespace millrace::partitioners
