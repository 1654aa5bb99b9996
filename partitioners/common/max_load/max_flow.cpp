// Layers by breadth-first search; paths along them by a depth-first search without recursion.
#include "partitioners/common/max_load/max_flow.h"

#include <algorithm>
#include <limits>

namespace millrace::partitioners::max_load {
namespace {

constexpr std::size_t kFar = std::numeric_limits<std::size_t>::max();
constexpr double kFlowRounding = 1e-13;  // of what was sent: less than that left is none

}  // namespace

void FlowNetwork::add_edge(std::size_t from, std::size_t to, double capacity) {
  edges_of_[from].push_back(edges_.size());
  edges_.push_back({to, capacity, 0});
  edges_of_[to].push_back(edges_.size());
  edges_.push_back({from, 0, 0});
}

bool FlowNetwork::layers(std::size_t source, std::size_t sink) {
  level_.assign(edges_of_.size(), kFar);
  next_.assign(edges_of_.size(), 0);
  std::vector<std::size_t> queue{source};
  level_[source] = 0;
  for (std::size_t at = 0; at < queue.size(); ++at) {
    for (const std::size_t e : edges_of_[queue[at]]) {
      const Edge& edge = edges_[e];
      if (!(edge.left > 0) || level_[edge.to] != kFar) continue;
      level_[edge.to] = level_[queue[at]] + 1;
      queue.push_back(edge.to);
    }
  }
  return level_[sink] != kFar;
}

// One path with room, filled; 0 when there is none in these layers.
double FlowNetwork::push(std::size_t source, std::size_t sink) {
  std::vector<std::size_t> path;
  std::size_t at = source;
  while (at != sink) {
    if (next_[at] == edges_of_[at].size()) {
      if (at == source) return 0;
      level_[at] = kFar;  // leads nowhere
      at = edges_[path.back() ^ 1].to;
      path.pop_back();
      ++next_[at];
      continue;
    }
    const std::size_t e = edges_of_[at][next_[at]];
    if (edges_[e].left > 0 && level_[edges_[e].to] == level_[at] + 1) {
      path.push_back(e);
      at = edges_[e].to;
    } else {
      ++next_[at];
    }
  }
  double room = std::numeric_limits<double>::infinity();
  for (const std::size_t e : path) room = std::min(room, edges_[e].left);
  for (const std::size_t e : path) {
    Edge& edge = edges_[e];
    edge.left -= room;
    if (edge.left <= kFlowRounding * room) edge.left = 0;
    edges_[e ^ 1].left += room;
  }
  return room;
}

double FlowNetwork::max_flow(std::size_t source, std::size_t sink, double enough) {
  for (Edge& edge : edges_) edge.left = edge.capacity;
  double flow = 0;
  while (flow < enough && layers(source, sink)) {
    for (double more = push(source, sink); more > 0; more = push(source, sink)) flow += more;
  }
  return flow;
}

}  // namespace millrace::partitioners::max_load
