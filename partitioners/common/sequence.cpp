// Makes orders and what is counted along them.
#include "partitioners/common/sequence.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "partitioners/common/cluster_order.h"

namespace millrace::partitioners {

Sequence::Sequence(const Graph& graph, const GraphBytes& bytes, std::string name, Order order,
                   std::span<const double> times, std::vector<std::size_t> items)
    : graph_(&graph),
      bytes_(&bytes),
      name_(std::move(name)),
      order_(std::move(order)),
      places_(graph, bytes, order_, times, items) {}

Cutting& Sequence::cheapest(std::size_t most) {
  most = std::min(most, places_.count());
  for (const auto& [count, cutting] : kept_) {
    if (count == most) return *cutting;
  }
  kept_.emplace_back(most, at(places_.cheapest(most)));
  return *kept_.back().second;
}

std::unique_ptr<Cutting> Sequence::at(Points points) const {
  return std::make_unique<Cutting>(*graph_, *bytes_, order_, std::move(points));
}

std::vector<std::unique_ptr<Sequence>> make_sequences(const Graph& graph, const GraphBytes& bytes,
                                                      std::span<const double> times, int stages, bool topological,
                                                      bool cluster) {
  constexpr double kPartOfAStage = 0.5;  // METHODS 6: τ
  const OpEdges edges = successors(graph);
  std::vector<std::unique_ptr<Sequence>> sequences;
  if (topological) {
    for (Order& order : topological_orders(graph, edges)) {
      sequences.push_back(std::make_unique<Sequence>(graph, bytes, "topological", std::move(order), times));
    }
  }
  if (cluster) {
    const double total = std::accumulate(times.begin(), times.end(), 0.0);
    ClusterOrder clustered = cluster_order(graph, edges, times, kPartOfAStage * total / stages);
    // An order that is there already has all of its cuts.
    const bool known = std::any_of(sequences.begin(), sequences.end(),
                                   [&](const auto& other) { return other->order() == clustered.order; });
    if (!known) {
      sequences.push_back(std::make_unique<Sequence>(graph, bytes, "cluster", std::move(clustered.order), times,
                                                     std::move(clustered.item_ends)));
    }
  }
  return sequences;
}

}  // namespace millrace::partitioners
