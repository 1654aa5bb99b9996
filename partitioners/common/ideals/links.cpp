// Asks the cost model once for each kind of link, number of rows and tensor.
#include "partitioners/common/ideals/links.h"

#include <algorithm>

#include "graph/footprint.h"

namespace millrace::partitioners::ideals {
namespace {

constexpr int kMostCompared = 32;  // devices up to which groups are compared: cubic in them

}  // namespace

Links::Links(const plan::Problem& problem, int first, int devices)
    : problem_(&problem),
      devices_(devices),
      of_pair_(static_cast<std::size_t>(devices) * static_cast<std::size_t>(devices), 0) {
  for (int a = 0; a < devices; ++a) {
    for (int b = a + 1; b < devices; ++b) {
      const cluster::Link link = problem.cluster->link(first + a, first + b);
      const auto found =
          std::find_if(kinds_.begin(), kinds_.end(), [&](const Kind& kind) { return kind.link == link; });
      const auto kind = static_cast<std::uint16_t>(found - kinds_.begin());
      if (found == kinds_.end()) kinds_.push_back({link, first + a, first + b});
      of_pair_[static_cast<std::size_t>(a * devices + b)] = kind;
      of_pair_[static_cast<std::size_t>(b * devices + a)] = kind;
    }
  }
}

const std::vector<double>& Links::table(std::size_t kind, std::int64_t rows) {
  std::vector<double>& seconds = tables_[{kind, rows}];
  if (!seconds.empty()) return seconds;
  for (const Tensor& tensor : problem_->graph->tensors()) {
    if (tensor.producer < 0) {
      seconds.push_back(0);
    } else {
      const Bytes amount = rows * tensor_bytes(tensor, problem_->sizes.real);
      seconds.push_back(problem_->cost->transfer_time(amount, kinds_[kind].a, kinds_[kind].b).value());
    }
  }
  return seconds;
}

std::vector<double> Links::fastest(std::int64_t rows) {
  std::vector<double> seconds = table(0, rows);
  for (std::size_t kind = 1; kind < kinds_.size(); ++kind) {
    const std::vector<double>& other = table(kind, rows);
    for (std::size_t i = 0; i < seconds.size(); ++i) seconds[i] = std::min(seconds[i], other[i]);
  }
  return seconds;
}

const Links::KindSet& Links::between(Group from, Group to) {
  const auto [at, made] = between_.try_emplace({from, to});
  KindSet& kinds = at->second;
  if (!made) return kinds;
  for (int a = from.first; a < from.first + from.replicas; ++a) {
    for (int b = to.first; b < to.first + to.replicas; ++b) kinds.push_back(kind_of(a, b));
  }
  std::sort(kinds.begin(), kinds.end());
  kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
  return kinds;
}

double Links::message(TensorId tensor, std::int64_t rows, Group from, Group to) {
  double slowest = 0;
  for (const std::uint16_t kind : between(from, to)) {
    slowest = std::max(slowest, table(kind, rows)[static_cast<std::size_t>(tensor)]);
  }
  return slowest;
}

Group Links::equivalent(Group from, int boundary) {
  if (devices_ > kMostCompared || boundary >= devices_) return from;
  const auto [at, made] = equivalent_.try_emplace({from, boundary}, from);
  if (!made) return at->second;
  const auto same = [&](Group other) {
    for (int b = boundary; b < devices_; ++b) {
      if (between(from, {b, 1}) != between(other, {b, 1})) return false;
    }
    return true;
  };
  for (std::int32_t first = 0; first < boundary; ++first) {
    for (std::int32_t replicas = 1; first + replicas <= boundary; ++replicas) {
      if (same({first, replicas})) return at->second = {first, replicas};
    }
  }
  return from;
}

bool Links::same_pattern(const Links& other) const {
  const auto equal = [](const Kind& a, const Kind& b) { return a.link == b.link; };
  return of_pair_ == other.of_pair_ &&
         std::equal(kinds_.begin(), kinds_.end(), other.kinds_.begin(), other.kinds_.end(), equal);
}

}  // namespace millrace::partitioners::ideals
