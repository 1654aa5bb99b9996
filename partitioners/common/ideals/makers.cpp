// Numbers lists of groups.
#include "partitioners/common/ideals/makers.h"

#include <algorithm>
#include <utility>

namespace millrace::partitioners::ideals {

Makers::Makers(const Graph& graph, const Lattice& lattice) : graph_(graph), lattice_(lattice) { number({}); }

const std::vector<TensorId>& Makers::live(int ideal) {
  const auto [at, made] = live_.try_emplace(ideal);
  if (!made) return at->second;
  for (OpId op = 0; op < graph_.size(); ++op) {
    if (!lattice_.contains(ideal, op)) continue;
    for (const TensorId output : graph_.op(op).outputs) {
      const auto readers = graph_.consumers(output);
      const auto outside = [&](OpId reader) { return !lattice_.contains(ideal, reader); };
      if (std::any_of(readers.begin(), readers.end(), outside)) at->second.push_back(output);
    }
  }
  std::sort(at->second.begin(), at->second.end());
  return at->second;
}

Group Makers::of(int ideal, std::int32_t list, TensorId tensor) {
  const std::vector<TensorId>& tensors = live(ideal);
  const auto at = std::lower_bound(tensors.begin(), tensors.end(), tensor) - tensors.begin();
  return lists_[static_cast<std::size_t>(list)][static_cast<std::size_t>(at)];
}

std::int32_t Makers::number(std::vector<Group> groups) {
  const auto [at, made] = numbers_.try_emplace(groups, static_cast<std::int32_t>(lists_.size()));
  if (made) lists_.push_back(std::move(groups));
  return at->second;
}

}  // namespace millrace::partitioners::ideals
