// For tests: one shape of one problem with everything that searches on stage labels point to.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "cost/analytic.h"
#include "partitioners/common/fm/shape_search.h"
#include "partitioners/common/fm/starts.h"
#include "plan/assignment.h"

namespace millrace::testing_support {

/// Two nodes; the devices of the second compute at half speed.
inline cluster::Cluster two_nodes(int devices, bool limited) {
  std::vector<cluster::Device> all;
  std::vector<int> node_of;
  for (int d = 0; d < devices; ++d) {
    const bool second = d >= (devices + 1) / 2;
    cluster::Device device;
    device.name = second ? "slow" : "fast";
    device.speed = second ? 0.5 : 1.0;
    device.flops["fp32"] = FlopsPerSecond(1e3);
    device.bandwidth = BytesPerSecond(1e3);
    if (limited) device.memory = Bytes(second ? 6000 : 9000);
    all.push_back(std::move(device));
    node_of.push_back(second ? 1 : 0);
  }
  const cluster::Link near{BytesPerSecond(400), Seconds(0.02)};
  const cluster::Link far{BytesPerSecond(100), Seconds(0.1)};
  return cluster::Cluster("two nodes", cluster::Kind::described, std::move(all), std::move(node_of),
                          {cluster::Node{"a", near}, cluster::Node{"b", near}}, cluster::Network{far, 1.0});
}

/// Unless told otherwise 60 rows in 5 micro-batches.
class DivisionCase {
 public:
  DivisionCase(Graph of, plan::Shape with, bool limited = false, double lambda = 0)
      : graph(std::move(of)),
        cluster(two_nodes(with.pipelines * with.devices, limited)),
        cost(graph, cluster),
        shape(with),
        edges(partitioners::successors(graph)),
        orders(partitioners::topological_orders(graph)) {
    problem.graph = &graph;
    problem.cluster = &cluster;
    problem.cost = &cost;
    problem.batch = 60;
    problem.micro_batches = 5;
    problem.pipelines = shape.pipelines;
    problem.stages = shape.stages;
    problem.sizes = {4, 8};
    make(lambda);
  }
  DivisionCase(const DivisionCase&) = delete;
  DivisionCase& operator=(const DivisionCase&) = delete;

  /// Again after the problem was changed.
  void make(double lambda = 0) {
    const bool recomputed = problem.recompute == plan::Recompute::all;
    netlist = partitioners::fm::make_netlist(graph, problem.sizes, recomputed);
    machine = std::make_unique<partitioners::fm::Machine>(problem, netlist, shape, lambda, recomputed);
  }

  partitioners::fm::Model model() const { return {&netlist, &machine->times(), machine.get()}; }
  partitioners::fm::Task task() const { return {&problem, model(), &edges, &orders}; }

  /// A random order cut at random places.
  partitioners::fm::StageOf random_division(std::uint64_t seed) const {
    partitioners::fm::Draws draws(seed, "division");
    const auto order = partitioners::fm::decode(edges, partitioners::fm::random_keys(netlist.nodes(), draws));
    return partitioners::fm::divided(order, partitioners::fm::random_ends(netlist.nodes(), shape.stages, draws));
  }

  Plan plan(const partitioners::fm::StageOf& stage_of) const {
    std::vector<plan::StageCut> cuts(static_cast<std::size_t>(shape.stages));
    for (std::size_t op = 0; op < stage_of.size(); ++op) {
      cuts[static_cast<std::size_t>(stage_of[op])].ops.push_back(static_cast<OpId>(op));
    }
    for (std::size_t s = 0; s < cuts.size(); ++s) cuts[s].replicas = machine->replicas()[s];
    Plan plan = plan::assign(problem, shape.pipelines, cuts, plan::Shares::by_speed);
    if (problem.recompute == plan::Recompute::all) {
      for (Pipeline& pipeline : plan.pipelines) {
        for (Stage& stage : pipeline.stages) stage.recompute = stage.ops;
      }
    }
    return plan;
  }

  /// Whether no edge goes back and no stage is empty.
  bool in_order(const partitioners::fm::StageOf& stage_of) const {
    std::vector<int> count(static_cast<std::size_t>(shape.stages), 0);
    bool good = stage_of.size() == netlist.nodes();
    for (std::size_t op = 0; good && op < stage_of.size(); ++op) {
      ++count.at(static_cast<std::size_t>(stage_of[op]));
      for (const OpId next : edges.of(static_cast<OpId>(op))) {
        good = good && stage_of[op] <= stage_of[static_cast<std::size_t>(next)];
      }
    }
    return good && std::find(count.begin(), count.end(), 0) == count.end();
  }

  Graph graph;
  cluster::Cluster cluster;
  cost::AnalyticCost cost;
  plan::Problem problem;
  plan::Shape shape;
  partitioners::OpEdges edges;
  std::vector<partitioners::Order> orders;
  partitioners::fm::Netlist netlist;
  std::unique_ptr<partitioners::fm::Machine> machine;
};

}  // namespace millrace::testing_support
