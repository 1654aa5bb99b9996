// Maximum flow between two vertices, by Dinic's algorithm (blocking flows in layered networks).
#pragma once

#include <cstddef>
#include <vector>

namespace millrace::partitioners::max_load {

class FlowNetwork {
 public:
  explicit FlowNetwork(std::size_t vertices) : edges_of_(vertices) {}

  void add_edge(std::size_t from, std::size_t to, double capacity);
  /// The value of a largest flow; stops early once it is at least `enough`. Flows of earlier calls are forgotten.
  double max_flow(std::size_t source, std::size_t sink, double enough);

 private:
  struct Edge {
    std::size_t to = 0;
    double capacity = 0;
    double left = 0;
  };

  bool layers(std::size_t source, std::size_t sink);
  double push(std::size_t source, std::size_t sink);

  std::vector<Edge> edges_;  // 2 e and 2 e + 1 are each other's reverse
  std::vector<std::vector<std::size_t>> edges_of_;
  std::vector<std::size_t> level_, next_;
};

}  // namespace millrace::partitioners::max_load
