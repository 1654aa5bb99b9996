// The recurrence itself, with windows on machines that the limit leaves.
#include "partitioners/common/pipedream/level_table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "plan/published/pipedream.h"

namespace millrace::partitioners {
namespace {

constexpr double kMachineRounding = 1e-9;  // machines counted by a division: never one too few

}  // namespace

LevelTable::LevelTable(const LevelQuestion& question, std::size_t source, bool idle)
    : question_(question),
      source_(source),
      cells_((question.prefixes->size() - source) * static_cast<std::size_t>(question.level.machines + 1)) {
  cell(source, 0).value = 0;
  for (int m = 1; idle && m < question.level.machines; ++m) {
    cell(source, m) = {.value = 0, .from = static_cast<std::int32_t>(source), .machines = m};
  }
}

LevelTable::Window LevelTable::window(std::size_t prefix, double limit, double per_machine) const {
  const std::vector<double>& seconds = question_.figures->seconds;
  const int machines = question_.level.machines;
  const auto least_for = [&](double work) {
    const double least = work * per_machine / limit;
    return std::isfinite(least) ? static_cast<int>(std::min(std::ceil(least - kMachineRounding), machines + 1.0)) : 0;
  };
  const double done = seconds[prefix] - seconds[source_];
  if (prefix + 1 == question_.prefixes->size()) return {machines, machines};
  if (prefix == source_) return {0, machines - least_for(seconds.back() - seconds[prefix])};
  return {std::max(1, least_for(done)), machines - std::max(1, least_for(seconds.back() - seconds[prefix]))};
}

double LevelTable::borders(std::size_t from, std::size_t to, int machines) const {
  double slowest = plan::pipedream_crossing(question_.figures->crossing_bytes[from], machines, question_.level);
  if (to + 1 == question_.prefixes->size()) return slowest;
  return std::max(slowest, plan::pipedream_crossing(question_.figures->crossing_bytes[to], machines, question_.level));
}

void LevelTable::extend(std::size_t from, std::size_t to, double seconds, double limit, Window before, Window after) {
  const PrefixFigures& figures = *question_.figures;
  const double parameters = figures.parameter_bytes[to] - figures.parameter_bytes[from];
  const double held = parameters + figures.activation_bytes[to] - figures.activation_bytes[from];
  for (int machines = std::max(1, after.least - before.most); machines <= after.most - before.least; ++machines) {
    const double alone = plan::pipedream_stage(seconds, parameters, machines, question_.level);
    if (!(alone < limit)) continue;
    const double bordered = std::max(alone, borders(from, to, machines));
    const int last = std::min(before.most, after.most - machines);
    for (int used = std::max(before.least, after.least - machines); used <= last; ++used) {
      // The first stage of a pipeline is charged for no border.
      const double value = std::max(used == 0 ? alone : bordered, cell(from, used).value);
      Cell& best = cell(to, used + machines);
      if (!(value < limit) || value >= best.value) continue;
      const int behind = question_.level.machines - used - machines;
      if (question_.memory_bytes && plan::pipedream_stash(held, machines, behind) > *question_.memory_bytes) continue;
      best = {.value = value, .from = static_cast<std::int32_t>(from), .machines = machines};
    }
  }
}

void LevelTable::park(std::size_t prefix, double limit) {
  const double crossing = question_.figures->crossing_bytes[prefix];
  // Downwards: a pipeline is not parked twice.
  for (int used = question_.level.machines - 1; used >= 0; --used) {
    for (int machines = 1; used + machines <= question_.level.machines; ++machines) {
      const double border = used == 0 ? 0 : plan::pipedream_crossing(crossing, machines, question_.level);
      const double value = std::max(border, cell(prefix, used).value);
      Cell& best = cell(prefix, used + machines);
      if (value < limit && value < best.value) {
        best = {.value = value, .from = static_cast<std::int32_t>(prefix), .machines = machines};
      }
    }
  }
}

double LevelTable::most_seconds(std::size_t from, std::size_t to, double limit, Window before, Window after) const {
  const PrefixFigures& figures = *question_.figures;
  const double parameters = figures.parameter_bytes[to] - figures.parameter_bytes[from];
  double most = -1;
  for (int machines = std::max(1, after.least - before.most); machines <= after.most - before.least; ++machines) {
    if (before.least > 0 && borders(from, to, machines) >= limit) continue;
    most = std::max(most, (limit - pipedream_stage(0, parameters, machines, question_.level)) * machines);
  }
  return most;
}

std::vector<LevelStep> LevelTable::trace(std::size_t to, int machines) const {
  std::vector<LevelStep> steps;
  while (cell(to, machines).from >= 0) {
    const Cell& last = cell(to, machines);
    steps.push_back({static_cast<std::size_t>(last.from), to, last.machines});
    to = static_cast<std::size_t>(last.from);
    machines -= last.machines;
  }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

}  // namespace millrace::partitioners
