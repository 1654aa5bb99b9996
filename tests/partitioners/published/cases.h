// For tests of published objectives: machines, small graphs, and plans made by hand or by trying all.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/random.h"
#include "cost/analytic.h"
#include "graph/graph_builder.h"
#include "plan/published.h"

namespace millrace::testing_support {

/// `nodes` of `devices` each; links of nodes and the network have these bandwidths.
inline cluster::Cluster equal_nodes(int nodes, int devices, double inner, double outer = 1,
                                    std::optional<Bytes> memory = {}) {
  std::vector<cluster::Device> list(static_cast<std::size_t>(nodes * devices));
  std::vector<int> node_of;
  for (int d = 0; d < nodes * devices; ++d) {
    list[static_cast<std::size_t>(d)].name = "device";
    list[static_cast<std::size_t>(d)].memory = memory;
    node_of.push_back(d / devices);
  }
  std::vector<cluster::Node> hosts;
  for (int n = 0; n < nodes; ++n) hosts.push_back({fmt::format("host{}", n), {BytesPerSecond(inner), {}}});
  return cluster::Cluster("equal", cluster::Kind::described, std::move(list), std::move(node_of), std::move(hosts),
                          {{BytesPerSecond(outer), {}}, 1.0});
}

/// A question with all that it points to.
struct PublishedCase {
  Graph graph;
  cluster::Cluster cluster;
  cost::AnalyticCost cost;
  plan::Problem problem;

  PublishedCase(Graph of, cluster::Cluster on, plan::Objective objective, std::int64_t batch = 1)
      : graph(std::move(of)), cluster(std::move(on)), cost(graph, cluster) {
    problem.graph = &graph;
    problem.cluster = &cluster;
    problem.cost = &cost;
    problem.objective = objective;
    problem.batch = batch;
  }
  PublishedCase(const PublishedCase&) = delete;
  PublishedCase& operator=(const PublishedCase&) = delete;
};

struct Layer {
  double seconds = 0;
  std::int64_t parameter_bytes = 0;
  std::int64_t output_bytes = 0;
  std::vector<int> reads{};
};

/// Cost operators n0, n1, … ; inputs of the graph are read by those that read nothing.
inline Graph profile(const std::vector<Layer>& layers, double profile_batch = 1) {
  GraphBuilder builder("profile");
  std::vector<TensorId> outputs;
  for (const Layer& layer : layers) {
    std::vector<TensorId> inputs;
    for (const int read : layer.reads) inputs.push_back(outputs[static_cast<std::size_t>(read)]);
    OpFigures figures;
    figures.forward_s = layer.seconds;
    figures.parameter_bytes = layer.parameter_bytes;
    figures.output_bytes = layer.output_bytes;
    outputs.push_back(builder.add_cost(fmt::format("n{}", outputs.size()), std::move(inputs), figures));
  }
  builder.carry({"pipedream", LayerProfile{profile_batch, std::vector<bool>(layers.size(), false)}});
  return builder.build();
}

/// Layers with small whole figures, some of them zero; edges between near neighbours.
inline std::vector<Layer> random_layers(int size, std::uint64_t seed, bool free_ones = false) {
  const Random random(seed, "published layers");
  std::uint64_t drawn = 0;
  const auto draw = [&](std::uint64_t bound) { return static_cast<std::int64_t>(random.below(bound, drawn++)); };
  std::vector<Layer> layers;
  for (int i = 0; i < size; ++i) {
    Layer layer;
    const bool free = free_ones && draw(3) == 0;
    layer.seconds = free ? 0 : static_cast<double>(1 + draw(9));
    layer.parameter_bytes = free ? 0 : 4 * draw(4);
    layer.output_bytes = 4 * draw(5);
    for (int j = std::max(0, i - 3); j < i; ++j) {
      if (draw(2) == 0) layer.reads.push_back(j);
    }
    layers.push_back(std::move(layer));
  }
  return layers;
}

/// Calls for each way to divide the operators into stages that ascend along edges: stage by operator, and how many.
inline void each_division(const Graph& graph, int most_stages,
                          const std::function<void(const std::vector<int>&, int)>& visit) {
  std::vector<int> stage(static_cast<std::size_t>(graph.size()), 0);
  for (int stages = 1; stages <= most_stages; ++stages) {
    const std::function<void(OpId)> place = [&](OpId op) {
      if (op == graph.size()) {
        std::vector<bool> filled(static_cast<std::size_t>(stages), false);
        for (const int s : stage) filled[static_cast<std::size_t>(s)] = true;
        if (std::find(filled.begin(), filled.end(), false) == filled.end()) visit(stage, stages);
        return;
      }
      int first = 0;
      for (const TensorId input : graph.op(op).inputs) {
        const OpId producer = graph.tensor(input).producer;
        if (producer >= 0) first = std::max(first, stage[static_cast<std::size_t>(producer)]);
      }
      for (int s = first; s < stages; ++s) {
        stage[static_cast<std::size_t>(op)] = s;
        place(op + 1);
      }
    };
    place(0);
  }
}

/// One pipeline of these stages on consecutive devices.
inline Plan one_pipeline(const std::vector<int>& stage_of, const std::vector<int>& replicas) {
  Plan plan;
  std::vector<Stage>& stages = plan.pipelines.emplace_back().stages;
  std::vector<std::vector<OpId>> ops(replicas.size());
  for (std::size_t op = 0; op < stage_of.size(); ++op) {
    ops[static_cast<std::size_t>(stage_of[op])].push_back(static_cast<OpId>(op));
  }
  int device = 0;
  for (std::size_t s = 0; s < replicas.size(); ++s) {
    Stage& stage = stages.emplace_back();
    stage.ops = std::move(ops[s]);
    stage.shares.assign(static_cast<std::size_t>(replicas[s]), 1.0 / replicas[s]);
    for (int r = 0; r < replicas[s]; ++r) stage.devices.push_back(device++);
  }
  return plan;
}

/// Calls for each list of `parts` whole numbers from 1 on with that sum.
inline void each_composition(int sum, int parts, const std::function<void(const std::vector<int>&)>& visit) {
  std::vector<int> list;
  const std::function<void(int)> add = [&](int left) {
    if (static_cast<int>(list.size()) + 1 == parts) {
      list.push_back(left);
      visit(list);
      list.pop_back();
      return;
    }
    for (int here = 1; here <= left - (parts - static_cast<int>(list.size()) - 1); ++here) {
      list.push_back(here);
      add(left - here);
      list.pop_back();
    }
  };
  if (parts <= sum) add(sum);
}

}  // namespace millrace::testing_support
