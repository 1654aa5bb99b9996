// Shapes whose operators lie on chains side by side: chain, skip_heavy, layered, random_dag. The chains cover all
// operators and start independent of each other, so there are as many independent operators as chains (Dilworth).
#include <algorithm>

#include "models/synthetic_builder.h"

namespace millrace::models {
namespace {

using Lanes = std::vector<TensorId>;  // the last output of each chain

// The source, then the first operator of as many lanes as there are operators for, beside the source and the sink.
Lanes open_lanes(SyntheticBuilder& graph, std::int64_t width) {
  const TensorId source = graph.compute({});
  Lanes lanes(static_cast<std::size_t>(std::clamp<std::int64_t>(graph.left() - 1, 0, width)), source);
  for (TensorId& lane : lanes) lane = graph.compute({source});
  if (lanes.empty() && graph.left() > 0) lanes.push_back(source);
  return lanes;
}

// One sink, so that the graph has one result.
void close_lanes(SyntheticBuilder& graph, Lanes lanes) {
  if (graph.left() > 0) graph.join(std::move(lanes));
}

}  // namespace

void add_chain(SyntheticBuilder& graph) {
  TensorId last = graph.compute({});
  while (graph.left() > 0) last = graph.compute({last});
}

// Outputs wait in a pool. Each operator reads the one before and, once the pool is full, one from anywhere in it: each
// output is read twice, and the waiting times have no bound. The last operators empty the pool.
void add_skip_heavy(SyntheticBuilder& graph, std::int64_t width) {
  std::vector<TensorId> pool;
  TensorId last = graph.compute({});
  while (graph.left() > 0) {
    const auto waiting = static_cast<std::int64_t>(pool.size());
    const bool closing = waiting >= graph.left();
    std::vector<TensorId> inputs{last};
    if (waiting > 0 && (waiting >= width || closing)) {
      const auto at = static_cast<std::size_t>(graph.below(waiting));
      inputs.push_back(pool[at]);
      pool[at] = pool.back();
      pool.pop_back();
    }
    if (!closing) pool.push_back(last);
    last = graph.compute(std::move(inputs));
  }
}

void add_layered(SyntheticBuilder& graph, std::int64_t width) {
  graph.layer("layer0");
  Lanes before = open_lanes(graph, width);
  Lanes lanes = before;
  const auto count = static_cast<std::int64_t>(lanes.size());
  for (std::int64_t layer = 1; graph.left() > 1; ++layer) {
    graph.layer("layer" + std::to_string(layer));
    for (std::size_t i = 0; i < lanes.size() && graph.left() > 1; ++i) {
      std::vector<TensorId> inputs{before[i]};
      const auto other = static_cast<std::size_t>(graph.below(2 * count));  // half of the operators read a second one
      if (other < lanes.size() && other != i) inputs.push_back(before[other]);
      lanes[i] = graph.compute(std::move(inputs));
    }
    before = lanes;
  }
  close_lanes(graph, std::move(lanes));
}

void add_random_dag(SyntheticBuilder& graph, std::int64_t width) {
  constexpr std::int64_t kReach = 8;  // operators a lane that a read across lanes goes back
  Lanes lanes = open_lanes(graph, width);
  const auto count = static_cast<std::int64_t>(lanes.size());
  std::vector<TensorId> recent = lanes;  // a ring
  std::size_t oldest = 0;
  while (graph.left() > 1) {
    const auto lane = static_cast<std::size_t>(graph.below(count));
    std::vector<TensorId> inputs{lanes[lane]};
    while (graph.below(2) == 0) {  // one more on average
      const TensorId other = recent[static_cast<std::size_t>(graph.below(static_cast<std::int64_t>(recent.size())))];
      if (std::find(inputs.begin(), inputs.end(), other) == inputs.end()) inputs.push_back(other);
    }
    lanes[lane] = graph.compute(std::move(inputs));
    if (static_cast<std::int64_t>(recent.size()) < kReach * count) {
      recent.push_back(lanes[lane]);
    } else {
      recent[oldest] = lanes[lane];
      oldest = (oldest + 1) % recent.size();
    }
  }
  close_lanes(graph, std::move(lanes));
}

}  // namespace millrace::models
