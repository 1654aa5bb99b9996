// Counts what crosses each place once, then picks by equal times.
#include "partitioners/common/cut_points.h"

#include <algorithm>

namespace millrace::partitioners {
namespace {

// Operators without time move on too: together they weigh a thousandth of the whole.
constexpr double kLeastWeight = 1e-3;

}  // namespace

CutPlaces::CutPlaces(const Graph& graph, const GraphBytes& bytes, const Order& order, std::span<const double> times,
                     std::span<const std::size_t> allowed)
    : size_(order.size()) {
  std::vector<std::size_t> position(size_);
  for (std::size_t i = 0; i < size_; ++i) position[static_cast<std::size_t>(order[i])] = i;
  std::vector<double> crossing(size_ + 1, 0.0);  // as differences first
  double total = 0, places = 0;
  for (std::size_t i = 0; i < size_; ++i) {
    total += times[static_cast<std::size_t>(order[i])];
    for (const TensorId output : graph.op(order[i]).outputs) {
      std::size_t last = i;
      for (const OpId reader : graph.consumers(output)) {
        last = std::max(last, position[static_cast<std::size_t>(reader)]);
      }
      crossing[i + 1] += bytes.tensor[static_cast<std::size_t>(output)];
      crossing[last + 1] -= bytes.tensor[static_cast<std::size_t>(output)];
      places += static_cast<double>(last - i);
    }
  }
  width_ = places / static_cast<double>(std::max<std::size_t>(1, size_));
  if (total == 0) total = 1;
  std::size_t next = 0;
  double passed = 0, now = 0;
  for (std::size_t i = 1; i < size_; ++i) {
    passed += times[static_cast<std::size_t>(order[i - 1])] + total * kLeastWeight / static_cast<double>(size_);
    now += crossing[i];
    if (!allowed.empty()) {
      while (next < allowed.size() && allowed[next] < i) ++next;
      if (next == allowed.size()) break;
      if (allowed[next] != i) continue;
    }
    allowed_.push_back(i);
    passed_.push_back(passed);
    crossing_.push_back(now);
  }
}

// The cheapest of each of `parts` parts of places [begin, end).
void CutPlaces::thin(std::size_t begin, std::size_t end, std::size_t parts, Points& points) const {
  if (begin >= end || parts == 0) return;
  if (end - begin <= parts) {
    points.insert(points.end(), allowed_.begin() + static_cast<std::ptrdiff_t>(begin),
                  allowed_.begin() + static_cast<std::ptrdiff_t>(end));
    return;
  }
  const double from = begin > 0 ? passed_[begin - 1] : 0.0;
  const double share = (passed_[end - 1] - from) / static_cast<double>(parts);
  double part_end = from + share;
  std::size_t best = end;
  for (std::size_t i = begin; i < end; ++i) {
    if (best == end || crossing_[i] < crossing_[best]) best = i;
    if (passed_[i] < part_end && i + 1 < end) continue;
    points.push_back(allowed_[best]);
    best = end;
    while (part_end <= passed_[i]) part_end += share;
  }
}

Points CutPlaces::cheapest(std::size_t most) const {
  Points points{0};
  thin(0, allowed_.size(), most, points);
  points.push_back(size_);
  return points;
}

Points CutPlaces::near(const Points& coarse, std::span<const std::size_t> centres, std::size_t most) const {
  // One coarse part on each side of a centre is divided.
  std::vector<bool> divided(coarse.size(), false);
  std::size_t count = 0;
  for (const std::size_t centre : centres) {
    for (std::size_t part = centre > 0 ? centre - 1 : 0; part <= centre && part + 1 < coarse.size(); ++part) {
      if (!divided[part]) ++count;
      divided[part] = true;
    }
  }
  const std::size_t parts = count > 0 ? std::max<std::size_t>(1, most / count) : 1;
  Points points{0};
  std::size_t begin = 0;
  for (std::size_t part = 0; part + 1 < coarse.size(); ++part) {
    const auto last =
        std::lower_bound(allowed_.begin() + static_cast<std::ptrdiff_t>(begin), allowed_.end(), coarse[part + 1]);
    const auto end = static_cast<std::size_t>(last - allowed_.begin());
    if (divided[part]) thin(begin, end, parts, points);
    if (coarse[part + 1] < size_) points.push_back(coarse[part + 1]);
    begin = coarse[part + 1] < size_ ? end + 1 : end;
  }
  points.push_back(size_);
  return points;
}

}  // namespace millrace::partitioners
