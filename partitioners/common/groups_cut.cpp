// The least slowest stage over all ends of the first stages: O(stages · places²).
#include "partitioners/common/groups_cut.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/limits.h"
#include "graph/footprint.h"
#include "plan/closed_form.h"
#include "plan/device_kinds.h"
#include "plan/rows.h"

namespace millrace::partitioners {
namespace {

constexpr double kSteps = 2e7;       // of the inner loop, which bound the number of places
constexpr double kCountedOps = 2e7;  // operators that are looked at to count memory, likewise

}  // namespace

CapacityCutter::CapacityCutter(const plan::Problem& problem, const Order& order, std::int64_t margin, bool recompute)
    : problem_(problem),
      order_(order),
      margin_(margin),
      recompute_(recompute),
      bytes_(*problem.graph, problem.sizes),
      same_device_(plan::first_alike(*problem.cluster)),
      crossing_bytes_(order.size() + 1, 0.0),
      crossing_tensors_(order.size() + 1, 0.0) {
  for (int device = 0; device < problem.cluster->size(); ++device) {
    limited_ = limited_ || problem.memory_of(device).has_value();
  }
  const Graph& graph = *problem.graph;
  std::vector<std::size_t> position(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) position[static_cast<std::size_t>(order[i])] = i;
  for (TensorId id = 0; id < static_cast<TensorId>(graph.tensors().size()); ++id) {
    const Tensor& tensor = graph.tensor(id);
    if (tensor.producer < 0) continue;
    std::size_t last = 0;
    for (const OpId reader : graph.consumers(id)) last = std::max(last, position[static_cast<std::size_t>(reader)]);
    const std::size_t made = position[static_cast<std::size_t>(tensor.producer)];
    if (last <= made) continue;
    const auto bytes = static_cast<double>(tensor_bytes(tensor, problem.sizes.real).value());
    crossing_bytes_[made + 1] += bytes;
    crossing_bytes_[last + 1] -= bytes;
    crossing_tensors_[made + 1] += 1;
    crossing_tensors_[last + 1] -= 1;
  }
  for (std::size_t i = 1; i <= order.size(); ++i) {
    crossing_bytes_[i] += crossing_bytes_[i - 1];
    crossing_tensors_[i] += crossing_tensors_[i - 1];
  }
  for (const OpId op : order) times_.push_back(problem.cost->op_time(op, 1, 0).total().value());
}

// All positions, or of each of equal parts of the time the one where the fewest bytes cross.
const std::vector<std::size_t>& CapacityCutter::places(std::size_t stages) {
  std::vector<std::size_t>& places = places_[stages];
  if (!places.empty()) return places;
  const auto size = static_cast<double>(order_.size());
  double most = std::sqrt(kSteps / static_cast<double>(stages));
  if (limited_) most = std::min(most, std::sqrt(kCountedOps / size));
  const auto parts = std::max(static_cast<std::size_t>(most), 2 * stages);
  places.push_back(0);
  if (order_.size() <= parts) {
    for (std::size_t i = 1; i <= order_.size(); ++i) places.push_back(i);
    return places;
  }
  const Cuts ends = equal_cuts(times_, static_cast<int>(parts));
  for (std::size_t part = 0; part + 1 < ends.size(); ++part) {
    const std::size_t first = places.back() + 1, last = ends[part];
    const auto at = std::min_element(crossing_bytes_.begin() + static_cast<std::ptrdiff_t>(std::min(first, last)),
                                     crossing_bytes_.begin() + static_cast<std::ptrdiff_t>(last) + 1);
    places.push_back(static_cast<std::size_t>(at - crossing_bytes_.begin()));
  }
  places.push_back(order_.size());
  return places;
}

const std::vector<double>& CapacityCutter::times_before(int device, std::int64_t rows) {
  const int kind = same_device_[static_cast<std::size_t>(device)];
  std::vector<double>& before = profiles_[{kind, rows}];
  if (!before.empty()) return before;
  before.push_back(0);
  for (const OpId op : order_) {
    const cost::OpTime time = problem_.cost->op_time(op, rows, kind);
    before.push_back(before.back() + time.total().value() + (recompute_ ? time.forward.value() : 0.0));
  }
  return before;
}

// What crosses is taken to be received: one message for each tensor.
double CapacityCutter::received(std::size_t begin, std::int64_t rows, int from, int to) const {
  const double tensors = crossing_tensors_[begin];
  if (tensors == 0) return 0;
  const double bytes = crossing_bytes_[begin] * static_cast<double>(rows) / tensors;
  return tensors * problem_.cost->transfer_time(Bytes(std::llround(bytes)), from, to).value();
}

const RowFootprint& CapacityCutter::footprint(std::size_t begin, std::size_t end) {
  const auto [at, made] = footprints_.try_emplace({begin, end});
  if (!made) return at->second;
  std::vector<OpId> ops(order_.begin() + static_cast<std::ptrdiff_t>(begin),
                        order_.begin() + static_cast<std::ptrdiff_t>(end));
  std::sort(ops.begin(), ops.end());
  return at->second = row_footprint(bytes_, ops, recompute_ ? ops : std::vector<OpId>{});
}

bool CapacityCutter::fits(const Team& team, std::size_t begin, std::size_t end, std::int64_t rows, std::int64_t live) {
  if (!limited_) return true;
  const RowFootprint& footprint = this->footprint(begin, end);
  const std::vector<std::int64_t> parts = largest_remainder(rows, team.shares);
  for (std::size_t r = 0; r < parts.size(); ++r) {
    const auto limit = problem_.memory_of(team.devices[r]);
    if (limit && footprint.bytes(parts[r], live) + margin_ > limit->value()) return false;
  }
  return true;
}

CapacityCutter::Question CapacityCutter::question(const std::vector<Team>& teams, std::int64_t rows) const {
  Question question{rows, teams, {}};
  for (std::size_t s = 0; s < teams.size(); ++s) {
    for (int& device : question.teams[s].devices) device = same_device_[static_cast<std::size_t>(device)];
    if (s == 0) continue;
    const cluster::Link link = problem_.cluster->link(teams[s - 1].devices.back(), teams[s].devices.front());
    question.links.emplace_back(link.bandwidth.value(), link.latency.value());
  }
  return question;
}

const std::optional<CapacityCut>& CapacityCutter::cut(const std::vector<Team>& teams, std::int64_t rows) {
  const auto [at, made] = known_.try_emplace(question(teams, rows));
  if (made) at->second = solve(teams, rows);
  return at->second;
}

std::optional<CapacityCut> CapacityCutter::solve(const std::vector<Team>& teams, std::int64_t rows) {
  const std::vector<std::size_t>& at = places(teams.size());
  const plan::ScheduleTraits& traits = plan::schedule_traits(problem_.schedule);
  std::vector<double> best(at.size(), kNever), next;
  best[0] = 0;
  std::vector<std::vector<std::int32_t>> from;  // [stage][place of its end]: place of its begin
  for (std::size_t s = 0; s < teams.size(); ++s) {
    const Team& team = teams[s];
    const std::int64_t live = traits.needed(problem_.micro_batches, static_cast<std::int64_t>(teams.size() - s),
                                            static_cast<std::int64_t>(teams.size()));
    const std::vector<std::int64_t> parts = largest_remainder(rows, team.shares);
    std::vector<const std::vector<double>*> profiles;
    for (std::size_t r = 0; r < parts.size(); ++r) profiles.push_back(&times_before(team.devices[r], parts[r]));
    std::sort(profiles.begin(), profiles.end());  // equal devices with equal parts have one
    profiles.erase(std::unique(profiles.begin(), profiles.end()), profiles.end());
    const std::int64_t most = *std::max_element(parts.begin(), parts.end());
    next.assign(at.size(), kNever);
    from.emplace_back(at.size(), -1);
    const bool last = s + 1 == teams.size();
    for (std::size_t begin = s; begin < at.size(); ++begin) {
      if (best[begin] == kNever) continue;
      const double transfer =
          s == 0 ? 0.0 : 2 * received(at[begin], most, teams[s - 1].devices.back(), team.devices.front());
      // The last stage ends at the end, and has an operator like the others.
      for (std::size_t end = last ? std::max(at.size() - 1, begin + 1) : begin + 1; end < at.size(); ++end) {
        double slowest = 0;
        for (const auto* before : profiles) slowest = std::max(slowest, (*before)[at[end]] - (*before)[at[begin]]);
        const double value = std::max(best[begin], slowest + transfer);
        if (value >= next[end]) continue;
        if (!fits(team, at[begin], at[end], rows, live)) break;  // larger ones do not fit either
        next[end] = value;
        from.back()[end] = static_cast<std::int32_t>(begin);
      }
    }
    best.swap(next);
  }
  if (best.back() == kNever) return std::nullopt;
  CapacityCut result;
  result.slowest = best.back();
  std::size_t end = at.size() - 1;
  for (std::size_t s = teams.size(); s-- > 0;) {
    result.ends.push_back(at[end]);
    end = static_cast<std::size_t>(from[s][end]);
  }
  std::reverse(result.ends.begin(), result.ends.end());
  return result;
}

std::int64_t CapacityCutter::most_rows(const std::vector<Team>& teams, std::int64_t rows) {
  if (!limited_ || cut(teams, rows)) return rows;
  std::int64_t fits = 0, fails = rows;
  while (fails - fits > 1) {
    const std::int64_t middle = fits + (fails - fits) / 2;
    (cut(teams, middle) ? fits : fails) = middle;
  }
  return fits;
}

}  // namespace millrace::partitioners
