// For tests: every small graph, machines and figures drawn for it, and the best plan by trying all.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/random.h"
#include "cost/analytic.h"
#include "graph/graph_builder.h"
#include "plan/assignment.h"
#include "plan/evaluator.h"
#include "plan/objective.h"
#include "plan/problem.h"

namespace millrace::testing_support {

/// Acyclic graphs of `size` operators: bit k of `edges` is the k-th pair i < j in lexicographic order.
inline std::uint64_t dag_count(int size) { return std::uint64_t{1} << (size * (size - 1) / 2); }

/// One such graph of cost operators with whole figures below ten, the same for the same arguments.
inline Graph dag(int size, std::uint64_t edges, std::uint64_t seed) {
  const Random random(seed, "figures", edges, static_cast<std::uint64_t>(size));
  std::uint64_t drawn = 0;
  const auto draw = [&](std::uint64_t bound) { return static_cast<double>(random.below(bound, drawn++)); };
  GraphBuilder builder("dag");
  std::vector<TensorId> outputs;
  for (int op = 0; op < size; ++op) {
    std::vector<TensorId> inputs;
    int pair = 0;
    for (int i = 0; i < size; ++i) {
      for (int j = i + 1; j < size; ++j, ++pair) {
        if (j == op && (edges >> pair & 1) != 0) inputs.push_back(outputs[static_cast<std::size_t>(i)]);
      }
    }
    OpFigures figures;
    figures.forward_s = draw(10);
    figures.backward_input_s = draw(10);
    figures.backward_weight_s = draw(5);
    figures.parameter_bytes = draw(3) < 2 ? 0 : 4 * static_cast<std::int64_t>(1 + draw(9));
    figures.output_bytes = 1 + static_cast<std::int64_t>(draw(9));
    figures.saved_bytes = static_cast<std::int64_t>(draw(20));
    outputs.push_back(builder.add_cost(fmt::format("n{}", op), std::move(inputs), figures));
  }
  return builder.build();
}

/// Operators one after the other, in one layer, that keep 20 bytes of a row each and send one.
inline Graph saving_chain(int size) {
  GraphBuilder builder("saving");
  std::vector<TensorId> inputs;
  for (int op = 0; op < size; ++op) {
    inputs = {builder.add_cost(fmt::format("n{}", op), inputs, {1, 1, 1, 0, 1, 20})};
  }
  return builder.build();
}

/// A problem with everything that it points to, drawn for a graph: one to four devices on one node or two, equal or
/// unequal, free or slow messages; schedule, micro-batches, and at times a number of stages or pipelines or a limit.
struct TinyCase {
  Graph graph;
  cluster::Cluster cluster;
  std::unique_ptr<cost::CostModel> cost;
  plan::Problem problem;

  TinyCase(Graph of, std::uint64_t seed, std::uint64_t number)
      : TinyCase(std::move(of), draw_cluster(Random(seed, "cluster", number)), seed, number) {}
  TinyCase(Graph of, cluster::Cluster machine, std::uint64_t seed, std::uint64_t number)
      : graph(std::move(of)), cluster(std::move(machine)) {
    const Random random(seed, "problem", number);
    cost = std::make_unique<cost::AnalyticCost>(graph, cluster);
    problem.graph = &graph;
    problem.cluster = &cluster;
    problem.cost = cost.get();
    problem.micro_batches = 1 + static_cast<std::int64_t>(random.below(4, 0));
    problem.batch = problem.micro_batches * cluster.size() + static_cast<std::int64_t>(random.below(9, 1));
    problem.schedule = random.below(2, 2) == 0 ? "1f1b" : "gpipe";
    problem.sizes.optimizer_per_parameter = 4;
    if (random.below(4, 3) == 0) problem.stages = 1 + static_cast<int>(random.below(3, 4));
    if (random.below(4, 5) == 0) problem.pipelines = 1;
    if (random.below(4, 6) == 0) problem.memory_limit = Bytes(static_cast<std::int64_t>(random.below(600, 7)));
  }
  TinyCase(const TinyCase&) = delete;
  TinyCase& operator=(const TinyCase&) = delete;

  static cluster::Cluster draw_cluster(const Random& random) {
    const auto devices = static_cast<int>(1 + random.below(4, 0));
    const bool mixed = random.below(3, 1) == 0, two_nodes = random.below(3, 2) == 0, dear = random.below(3, 3) != 0;
    std::vector<cluster::Device> list;
    for (int d = 0; d < devices; ++d) {
      cluster::Device device;
      device.name = "device";
      if (mixed) device.speed = 1.0 / static_cast<double>(1 + random.below(3, 10 + static_cast<std::uint64_t>(d)));
      list.push_back(device);
    }
    return machine(std::move(list), two_nodes ? (devices + 1) / 2 : devices, dear);
  }

  /// The first `on_first` devices on one node, the others on a second, three times slower between them.
  static cluster::Cluster machine(std::vector<cluster::Device> list, int on_first, bool dear) {
    std::vector<int> node_of;
    for (int d = 0; d < static_cast<int>(list.size()); ++d) node_of.push_back(d < on_first ? 0 : 1);
    const auto link = [&](double slower) {
      const double unit = dear ? 2.0 / slower : 1e30;
      return cluster::Link{BytesPerSecond(unit), Seconds(dear ? 0.5 * slower : 0.0)};
    };
    return cluster::Cluster("tiny", cluster::Kind::described, std::move(list), std::move(node_of),
                            {cluster::Node{"a", link(1)}, cluster::Node{"b", link(1)}}, cluster::Network{link(3), 1.0});
  }
};

/// The best values over plans of equal pipelines on consecutive devices; infinite where none fits.
struct BestOfAll {
  double iteration_s = INFINITY;
  double bottleneck_s = INFINITY;        ///< per sample, as plan::value_of has it
  double memory_efficiency = -INFINITY;  ///< samples/s/GiB
  double bytes = INFINITY;
  bool any = false;

  void take(const plan::PlanReport& report) {
    any = true;
    iteration_s = std::min(iteration_s, plan::value_of(plan::Objective::throughput, report));
    bottleneck_s = std::min(bottleneck_s, plan::value_of(plan::Objective::bottleneck, report));
    memory_efficiency = std::max(memory_efficiency, plan::value_of(plan::Objective::memory_efficiency, report));
    bytes = std::min(bytes, plan::value_of(plan::Objective::communication, report));
  }
};

/// Tries every chain of down-closed sets, every number of replicas of each stage, every number of pipelines.
inline BestOfAll try_all(const plan::Problem& problem) {
  const Graph& graph = *problem.graph;
  std::vector<unsigned> needs(static_cast<std::size_t>(graph.size()), 0);
  for (OpId op = 0; op < graph.size(); ++op) {
    for (const TensorId input : graph.op(op).inputs) {
      needs[static_cast<std::size_t>(op)] |= 1U << graph.tensor(input).producer;
    }
  }
  const unsigned whole = (1U << graph.size()) - 1;
  const auto closed = [&](unsigned set) {
    for (OpId op = 0; op < graph.size(); ++op) {
      if ((set >> op & 1) != 0 && (needs[static_cast<std::size_t>(op)] & ~set) != 0) return false;
    }
    return true;
  };
  std::vector<unsigned> ideals;
  for (unsigned set = 1; set <= whole; ++set) {
    if (closed(set)) ideals.push_back(set);
  }

  BestOfAll best;
  plan::ClosedFormEvaluator evaluate(problem);
  for (const int pipelines : problem.pipeline_counts()) {
    if (problem.cluster->size() % pipelines != 0 || problem.batch < pipelines * problem.micro_batches) continue;
    const int devices = problem.devices_per_pipeline(pipelines);
    std::vector<plan::StageCut> cuts;
    const std::function<void(unsigned, int)> go = [&](unsigned done, int used) {
      if (done == whole) {
        const bool counted = !problem.stages || *problem.stages == static_cast<int>(cuts.size());
        if (used != devices || !counted) return;
        const plan::PlanReport report =
            evaluate.evaluate(plan::assign(problem, pipelines, cuts, plan::Shares::by_speed));
        if (report.feasible) best.take(report);
        return;
      }
      for (const unsigned next : ideals) {
        if ((next & done) != done || next == done) continue;
        plan::StageCut cut;
        for (OpId op = 0; op < graph.size(); ++op) {
          if (((next & ~done) >> op & 1) != 0) cut.ops.push_back(op);
        }
        for (cut.replicas = 1; used + cut.replicas <= devices; ++cut.replicas) {
          if (next == whole) cut.replicas = devices - used;
          cuts.push_back(cut);
          go(next, used + cut.replicas);
          cuts.pop_back();
        }
      }
    };
    go(0, 0);
  }
  return best;
}

}  // namespace millrace::testing_support
