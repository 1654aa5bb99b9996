// Decoding, encoding, crossover.
#include "partitioners/common/islands/chromosome.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace millrace::partitioners::islands {
namespace {

constexpr std::size_t kKeyMutation = 64;  // one key in so many is drawn anew
constexpr std::size_t kCutMutation = 16;  // and one cut

// Operators stage by stage; inside a stage by keys, in an order that respects edges.
Order stage_order(const fm::Task& task, const fm::StageOf& stage_of, const fm::Keys& keys) {
  // Keys by rank, behind those of all earlier stages.
  const auto size = static_cast<std::int64_t>(keys.size());
  std::vector<std::pair<std::int64_t, std::size_t>> by_stage;
  std::int32_t least = 0;
  for (const std::int32_t key : keys) least = std::min(least, key);
  const std::int64_t span = 4 * size + 1;  // keys lie within (−size, 2·size)
  for (std::size_t op = 0; op < keys.size(); ++op) by_stage.emplace_back(stage_of[op] * span + keys[op] - least, op);
  std::sort(by_stage.begin(), by_stage.end());
  fm::Keys ranks(keys.size());
  for (std::size_t i = 0; i < by_stage.size(); ++i) ranks[by_stage[i].second] = static_cast<std::int32_t>(i);
  return fm::decode(*task.successors, ranks);
}

// Groups of operators that hang together by edges which neither division cuts.
std::pair<std::vector<fm::Node>, std::size_t> uncut_groups(const fm::Task& task, const fm::StageOf& a,
                                                           const fm::StageOf& b) {
  std::vector<fm::Node> parent(a.size());
  for (std::size_t op = 0; op < a.size(); ++op) parent[op] = static_cast<fm::Node>(op);
  const auto root = [&](fm::Node node) {
    while (parent[static_cast<std::size_t>(node)] != node) {
      auto& up = parent[static_cast<std::size_t>(node)];
      up = parent[static_cast<std::size_t>(up)];
      node = up;
    }
    return node;
  };
  for (std::size_t op = 0; op < a.size(); ++op) {
    for (const OpId next : task.successors->of(static_cast<OpId>(op))) {
      const auto to = static_cast<std::size_t>(next);
      if (a[op] != a[to] || b[op] != b[to]) continue;
      const fm::Node x = root(static_cast<fm::Node>(op)), y = root(next);
      if (x != y) parent[static_cast<std::size_t>(std::max(x, y))] = std::min(x, y);
    }
  }
  std::vector<fm::Node> group(a.size());
  std::size_t groups = 0;
  for (std::size_t op = 0; op < a.size(); ++op) {
    const fm::Node top = root(static_cast<fm::Node>(op));  // the lowest of its group, so numbered before
    group[op] =
        static_cast<std::size_t>(top) == op ? static_cast<fm::Node>(groups++) : group[static_cast<std::size_t>(top)];
  }
  return {std::move(group), groups};
}

}  // namespace

Individual encode(const fm::Task& task, fm::Division division, const fm::Keys& keys) {
  Individual individual;
  individual.keys = fm::positions(stage_order(task, division.stage_of, keys));
  individual.ends.assign(static_cast<std::size_t>(task.model.machine->stages()), 0);
  for (const std::int32_t stage : division.stage_of) ++individual.ends[static_cast<std::size_t>(stage)];
  for (std::size_t s = 1; s < individual.ends.size(); ++s) individual.ends[s] += individual.ends[s - 1];
  individual.stage_of = std::move(division.stage_of);
  individual.value = division.value;
  return individual;
}

Individual grown(const fm::Task& task, const fm::Keys& keys, const fm::Ends& ends, const fm::Effort& effort,
                 fm::Deadline deadline) {
  const fm::StageOf first = fm::divided(fm::decode(*task.successors, keys), ends);
  return encode(task, fm::improved(task, first, effort, deadline), keys);
}

Individual uniform_child(const fm::Task& task, const Individual& a, const Individual& b, fm::Draws& draws,
                         const fm::Effort& effort, fm::Deadline deadline) {
  fm::Keys keys(a.keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    keys[i] = draws.below(kKeyMutation) == 0 ? draws.below(keys.size()) : draws.coin() ? a.keys[i] : b.keys[i];
  }
  fm::Ends ends(a.ends.size());
  for (std::size_t s = 0; s < ends.size(); ++s) {
    ends[s] = draws.below(kCutMutation) == 0 ? draws.below(keys.size()) : draws.coin() ? a.ends[s] : b.ends[s];
  }
  fm::repair(ends, keys.size());
  return grown(task, keys, ends, effort, deadline);
}

Individual combined_child(const fm::Task& task, const Individual& a, const Individual& b, const fm::Effort& effort,
                          fm::Deadline deadline) {
  const Individual& better = b < a ? b : a;
  const auto [group_of, groups] = uncut_groups(task, a.stage_of, b.stage_of);
  const fm::Netlist netlist = fm::contract(*task.model.netlist, group_of, groups);
  const fm::Times times = fm::contract(*task.model.times, group_of, groups);
  const fm::Model coarse{&netlist, &times, task.model.machine};
  fm::StageOf stage_of(groups);
  for (std::size_t op = 0; op < group_of.size(); ++op) {
    stage_of[static_cast<std::size_t>(group_of[op])] = better.stage_of[op];
  }
  fm::Labels labels(coarse, stage_of);
  fm::improve(labels, effort, deadline);
  fm::StageOf fine(group_of.size());
  for (std::size_t op = 0; op < fine.size(); ++op) fine[op] = labels.stage(group_of[op]);
  return encode(task, fm::improved(task, fine, effort, deadline), better.keys);
}

}  // namespace millrace::partitioners::islands
