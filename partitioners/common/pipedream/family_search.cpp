// PipeDream's recurrence: prefixes in ascending order; on two levels each prefix first cuts what follows it into nodes.
#include "partitioners/common/pipedream/family_search.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"

namespace millrace::partitioners {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<PlacedStep> placed(const std::vector<LevelStep>& steps, int first_node, int nodes) {
  std::vector<PlacedStep> all;
  int device = 0;
  for (const LevelStep& step : steps) {
    all.push_back({step, first_node, nodes, device});
    device += step.machines;
  }
  return all;
}

}  // namespace

FamilySearch::FamilySearch(const Question& question, Clock::time_point deadline)
    : question_(question),
      figures_(prefix_figures(*question.network, *question.prefixes)),
      inner_{question.prefixes, &figures_, question.levels.front(), question.memory_bytes},
      outer_{question.prefixes, &figures_, question.levels.back(), question.memory_bytes},
      deadline_(deadline),
      last_(question.prefixes->size() - 1) {}

FamilyCut FamilySearch::below(double limit) {
  limit_ = limit;
  return question_.levels.size() > 1 ? on_two() : on_one();
}

bool FamilySearch::stop() {
  late_ = late_ || Clock::now() > deadline_;
  return late_;
}

std::vector<FamilySearch::Window> FamilySearch::windows(const LevelTable& table, double per_machine) const {
  std::vector<Window> all;
  for (std::size_t prefix = 0; prefix <= last_; ++prefix) all.push_back(table.window(prefix, limit_, per_machine));
  return all;
}

FamilyCut FamilySearch::on_one() {
  LevelTable table(inner_, 0, question_.network->idle >= 0);
  const std::vector<Window> windows = this->windows(table, 1);
  const int machines = inner_.level.machines;
  if (question_.park_anywhere) table.park(0, limit_);
  for (std::size_t to = 1; to <= last_; ++to) {
    if (windows[to].empty()) continue;
    if (stop()) return {};
    for (std::size_t from = 0; from < to; ++from) {
      const int most = windows[to].most - windows[from].least;
      if (windows[from].empty() || seconds(from, to) >= limit_ * most || !nested(from, to)) continue;
      table.extend(from, to, seconds(from, to), limit_, windows[from], windows[to]);
    }
    if (question_.park_anywhere) table.park(to, limit_);
  }
  return {placed(table.trace(last_, machines), 0, 1), table.value(last_, machines)};
}

FamilyCut FamilySearch::on_two() {
  LevelTable table(outer_, 0, question_.network->idle >= 0);
  const std::vector<Window> windows = this->windows(table, 1.0 / inner_.level.machines);
  const int machines = outer_.level.machines;
  for (std::size_t from = 0; from < last_; ++from) {
    if (question_.park_anywhere) table.park(from, limit_);
    const auto reached = [&](int m) { return table.value(from, m) < kNever; };
    bool any = false;
    for (int m = windows[from].least; m <= windows[from].most; ++m) any = any || reached(m);
    if (any) extend_outer(table, from, windows);
    if (stop()) break;
  }
  if (question_.park_anywhere) table.park(last_, limit_);
  return {flattened(table.trace(last_, machines)), table.value(last_, machines)};
}

// Offers every outer stage that begins after `from`.
void FamilySearch::extend_outer(LevelTable& table, std::size_t from, const std::vector<Window>& windows) {
  std::vector<double> most(last_ + 1, -1);  // compute time that a stage to each prefix may have
  double highest = -1;
  for (std::size_t to = from + 1; to <= last_; ++to) {
    if (windows[to].empty() || !nested(from, to)) continue;
    most[to] = table.most_seconds(from, to, limit_, windows[from], windows[to]);
    highest = std::max(highest, most[to]);
  }
  const LevelTable nodes = inside(from, last_, highest, deadline_);
  for (std::size_t to = from + 1; to <= last_; ++to) {
    const double compute = most[to] > 0 ? nodes.value(to, inner_.level.machines) : kNever;
    if (compute < kNever) table.extend(from, to, compute, limit_, windows[from], windows[to]);
  }
}

// The inner level for all stages that begin after `source` and end at `end` or before.
LevelTable FamilySearch::inside(std::size_t source, std::size_t end, double limit, Clock::time_point deadline) const {
  LevelTable table(inner_, source, false);
  const int machines = inner_.level.machines;
  std::vector<std::size_t> starts{source};
  std::vector<Window> windows{{0, question_.park_anywhere ? machines - 1 : 0}};
  if (question_.park_anywhere) table.park(source, limit);
  for (std::size_t to = source + 1; to <= end; ++to) {
    const double work = seconds(source, to);
    if (!(work < limit * machines) || !nested(source, to)) continue;
    if (Clock::now() > deadline) break;
    const Window window{std::max(1, static_cast<int>(work / limit)), machines};
    for (std::size_t i = 0; i < starts.size(); ++i) {
      const std::size_t from = starts[i];
      if (seconds(from, to) < limit * machines && nested(from, to)) {
        table.extend(from, to, seconds(from, to), limit, windows[i], window);
      }
    }
    if (question_.park_anywhere) table.park(to, limit);
    starts.push_back(to);
    windows.push_back(window);
  }
  return table;
}

// Outer stages replaced by their inner ones, which are on all nodes of the outer stage.
std::vector<PlacedStep> FamilySearch::flattened(const std::vector<LevelStep>& outer) const {
  std::vector<PlacedStep> all;
  const int machines = inner_.level.machines;
  int node = 0;
  for (const LevelStep& step : outer) {
    std::vector<LevelStep> inside_node{{step.from, step.to, machines}};
    if (step.from < step.to) {
      inside_node = inside(step.from, step.to, kNever, Clock::time_point::max()).trace(step.to, machines);
    }
    for (const PlacedStep& stage : placed(inside_node, node, step.machines)) all.push_back(stage);
    node += step.machines;
  }
  return all;
}

}  // namespace millrace::partitioners
