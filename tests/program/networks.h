// Small networks and plans for the tests of programs, schedules and the simulator.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "plan/plan.h"
#include "program/program.h"
#include "schedules/registry.h"

namespace millrace::test {

/// linear0 … linear(n − 1), then the loss: n + 1 operators.
Graph chain(int linears);

/// A chain whose adds read the first linear's output again and again: it crosses every later border.
Graph skips(int blocks);

/// embedding, linears, and a head that shares the embedding's table.
Graph tied(int linears);

/// Convolutions with batch norm: buffers beside parameters.
Graph normalised(int blocks);

/// root → (left, right) → join → loss: stages of one operator run in parallel.
Graph diamond();

/// One pipeline of a plan: devices of each stage, and where stages end (counts of operators; empty: even).
struct PipelineShape {
  std::vector<int> replicas;
  std::int64_t micro_batches = 1;
  double share = 1.0;
  std::vector<int> ops_per_stage{};
  std::vector<int> warmup{};
};

/// Stages of consecutive operators on consecutive devices.
Plan make_plan(const Graph& graph, const std::vector<PipelineShape>& pipelines, std::string schedule = "1f1b");

/// The plan's pipelines with their stages on the devices of the first `places` stages, by the rule of `placement`.
Plan placed(const Plan& plan, int places, schedules::Placement placement);

/// The plan's schedule, lowered; not verified.
Program make_program(const Graph& graph, const Plan& plan, std::int64_t batch);

}  // namespace millrace::test
