// For tests of max_load: split models by hand and at random, as problems with all that they point to, and their optima
// by trying everything.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/random.h"
#include "cost/analytic.h"
#include "graph/graph_builder.h"
#include "plan/problem.h"

namespace millrace::testing_support {

/// A split model with the order of its operators: edges from lower to higher numbers.
struct Split {
  SplitModel model;
  std::vector<std::pair<int, int>> edges{};
};

/// n0 → n1 → …
inline std::vector<std::pair<int, int>> chain_edges(std::size_t ops) {
  std::vector<std::pair<int, int>> edges;
  for (int op = 1; op < static_cast<int>(ops); ++op) edges.emplace_back(op - 1, op);
  return edges;
}

inline Graph graph_of(const Split& split) {
  GraphBuilder builder("split");
  std::vector<std::vector<int>> before(split.model.ops.size());
  for (const auto& [from, to] : split.edges) before[static_cast<std::size_t>(to)].push_back(from);
  std::vector<TensorId> outputs;
  for (std::size_t op = 0; op < split.model.ops.size(); ++op) {
    std::vector<TensorId> inputs;
    for (const int from : before[op]) inputs.push_back(outputs[static_cast<std::size_t>(from)]);
    OpFigures figures;
    figures.forward_s = split.model.ops[op].accelerator_s;
    outputs.push_back(builder.add_cost(fmt::format("n{}", op), std::move(inputs), figures));
  }
  builder.carry({"dnn-partitioning", split.model});
  return builder.build();
}

/// The machine of the file: accelerators, then cores called "cpu".
inline cluster::Cluster machine_of(const SplitModel& model) {
  std::vector<cluster::Device> devices(static_cast<std::size_t>(model.accelerators + model.cpus));
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const bool accelerator = d < static_cast<std::size_t>(model.accelerators);
    devices[d].name = accelerator ? "accelerator" : "cpu";
    if (accelerator) devices[d].memory = Bytes(static_cast<std::int64_t>(model.memory_bytes));
  }
  std::vector<int> node_of(devices.size(), 0);
  return cluster::Cluster("carried", cluster::Kind::described, std::move(devices), std::move(node_of),
                          {cluster::Node{"host"}}, {});
}

struct SplitCase {
  Graph graph;
  cluster::Cluster cluster;
  cost::AnalyticCost cost;
  plan::Problem problem;

  SplitCase(Graph of, cluster::Cluster on) : graph(std::move(of)), cluster(std::move(on)), cost(graph, cluster) {
    problem.graph = &graph;
    problem.cluster = &cluster;
    problem.cost = &cost;
    problem.objective = plan::Objective::max_load;
  }
  explicit SplitCase(const Split& split) : SplitCase(graph_of(split), machine_of(split.model)) {}
  SplitCase(const SplitCase&) = delete;
  SplitCase& operator=(const SplitCase&) = delete;
};

/// Small integers, so that loads tie; transfers along edges and across them, also from later to earlier operators, as
/// backward passes have them; some operators only for cores; sometimes little memory.
inline Split random_split(int ops, std::uint64_t seed) {
  const Random random(seed, "random split");
  std::uint64_t next = 0;
  const auto draw = [&](int bound) {
    return static_cast<int>(random.below(static_cast<std::uint64_t>(bound), next++));
  };
  Split split;
  SplitModel& model = split.model;
  model.accelerators = 1 + draw(3);
  model.cpus = draw(3);
  const int density = 1 + draw(4), weightless = draw(4), only_cores = model.cpus > 0 ? draw(3) : 0;
  double bytes = 0;
  for (int op = 0; op < ops; ++op) {
    SplitModel::Op figures;
    const bool heavy = draw(4) >= weightless;
    figures.accelerator_s = heavy ? draw(9) : 0;
    figures.cpu_s = figures.accelerator_s * (1 + draw(4));
    figures.bytes = heavy ? draw(5) : 0;
    figures.on_accelerator = only_cores == 0 || draw(5) > 0;
    bytes += figures.bytes;
    model.ops.push_back(figures);
    for (int from = 0; from < op; ++from) {
      if (draw(6) < density) split.edges.emplace_back(from, op);
    }
  }
  model.memory_bytes = draw(3) == 0 ? 1 + bytes * (1 + draw(3)) / (1 + model.accelerators) : bytes;
  const int transfers = ops > 1 ? draw(2 * ops) : 0;
  for (int t = 0; t < transfers; ++t) {
    SplitModel::Transfer transfer;
    transfer.from = draw(ops);
    for (int op = 0; op < ops; ++op) {
      if (op != transfer.from && draw(ops) < 2) transfer.to.push_back(op);
    }
    if (transfer.to.empty()) continue;
    transfer.seconds = draw(5);
    model.transfers.push_back(std::move(transfer));
  }
  return split;
}

/// The load of a set of operators (bits) on an accelerator or a core, straight from the definition; infinite where it
/// is not allowed.
inline double load_of(const SplitModel& model, std::uint32_t set, bool core) {
  const auto inside = [&](OpId op) { return (set >> op & 1U) != 0; };
  double compute = 0, bytes = 0;
  for (OpId op = 0; op < static_cast<OpId>(model.ops.size()); ++op) {
    if (!inside(op)) continue;
    const SplitModel::Op& figures = model.ops[static_cast<std::size_t>(op)];
    if (!core && !figures.on_accelerator) return std::numeric_limits<double>::infinity();
    compute += core ? figures.cpu_s : figures.accelerator_s;
    bytes += figures.bytes;
  }
  if (core) return compute;
  if (bytes > model.memory_bytes) return std::numeric_limits<double>::infinity();
  double transfers = 0;
  for (const SplitModel::Transfer& transfer : model.transfers) {
    const auto readers = std::count_if(transfer.to.begin(), transfer.to.end(), inside);
    const bool sends = inside(transfer.from) && readers < static_cast<std::ptrdiff_t>(transfer.to.size());
    const bool receives = !inside(transfer.from) && readers > 0;
    if (sends || receives) transfers += transfer.seconds;
  }
  return compute + transfers;
}

/// The least max_load over all ways to give each operator a device; with `convex`, devices have an order (every one of
/// kinds is tried), and no operator's device comes before that of one that it reads. Infinite: no plan is allowed.
inline double best_by_trying(const Split& split, bool convex) {
  const SplitModel& model = split.model;
  const int ops = static_cast<int>(model.ops.size()), devices = model.accelerators + model.cpus;
  std::vector<double> on_accelerator, on_core;
  for (std::uint32_t set = 0; set < 1U << ops; ++set) {
    on_accelerator.push_back(load_of(model, set, false));
    on_core.push_back(load_of(model, set, true));
  }
  std::vector<int> cores(static_cast<std::size_t>(devices), 0);  // by place
  std::fill(cores.end() - model.cpus, cores.end(), 1);
  double best = std::numeric_limits<double>::infinity();
  std::vector<int> place(static_cast<std::size_t>(ops), 0);
  std::vector<std::uint32_t> sets(static_cast<std::size_t>(devices), 0);
  const std::function<void(int)> give = [&](int op) {
    if (op == ops) {
      double most = 0;
      for (std::size_t d = 0; d < sets.size(); ++d) {
        most = std::max(most, (cores[d] != 0 ? on_core : on_accelerator)[sets[d]]);
      }
      best = std::min(best, most);
      return;
    }
    int first = 0;
    for (const auto& [from, to] : split.edges) {
      if (convex && to == op) first = std::max(first, place[static_cast<std::size_t>(from)]);
    }
    for (int d = first; d < devices; ++d) {
      place[static_cast<std::size_t>(op)] = d;
      sets[static_cast<std::size_t>(d)] |= 1U << op;
      give(op + 1);
      sets[static_cast<std::size_t>(d)] &= ~(1U << op);
    }
  };
  std::sort(cores.begin(), cores.end());
  do {
    give(0);
  } while (convex && std::next_permutation(cores.begin(), cores.end()));
  return best;
}

/// Layers of `width` operators, each reading three of the layer before at random; all times and transfers differ.
inline Split wide_split(int width, int layers) {
  Split split;
  const Random random(7, "wide");
  for (int op = 0; op < width * layers; ++op) {
    const auto at = static_cast<std::uint64_t>(op) * 8;
    const double seconds = 1 + random.uniform(at);
    split.model.ops.push_back({seconds, 10 * seconds, 1, true, 1});
    if (op < width) continue;
    std::vector<int> read;
    for (std::uint64_t k = 1; k <= 3; ++k) {
      const auto column = static_cast<int>(random.below(static_cast<std::uint64_t>(width), at + k));
      read.push_back((op / width - 1) * width + column);
    }
    std::sort(read.begin(), read.end());
    read.erase(std::unique(read.begin(), read.end()), read.end());
    for (const int from : read) {
      split.edges.emplace_back(from, op);
      split.model.transfers.push_back({from, {op}, 0.1 * random.uniform(at + 4)});
    }
  }
  split.model.accelerators = 6;
  split.model.cpus = 1;
  split.model.memory_bytes = width * layers;
  return split;
}

}  // namespace millrace::testing_support
