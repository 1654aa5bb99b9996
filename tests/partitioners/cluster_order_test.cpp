// The cluster order: topological always, convex items, and known orders of known graphs.
#include "partitioners/common/cluster_order.h"

#include <numeric>

#include <gmock/gmock.h>

#include "tests/partitioners/random_graphs.h"
#include "tests/plan/table_cost.h"

namespace millrace::partitioners {
namespace {

using testing::ElementsAre;
using testing_support::branches;
using testing_support::chain;
using testing_support::ladder;
using testing_support::random_graph;

std::vector<double> ones(const Graph& graph) {
  return std::vector<double>(static_cast<std::size_t>(graph.size()), 1.0);
}

ClusterOrder cluster(const Graph& graph, double most) {
  return cluster_order(graph, successors(graph), ones(graph), most);
}

std::vector<std::string> names(const Graph& graph, const std::vector<OpId>& ops) {
  std::vector<std::string> result;
  for (const OpId op : ops) result.push_back(graph.op(op).name);
  return result;
}

// Items from their contents: "n0 | a0 a1 | …".
std::string items(const Graph& graph, const ClusterOrder& clustered) {
  std::string text;
  std::size_t begin = 0;
  for (const std::size_t end : clustered.item_ends) {
    for (; begin < end; ++begin) text += graph.op(clustered.order[begin]).name + " ";
    text += "| ";
  }
  return text;
}

void expect_topological_cover(const Graph& graph, const ClusterOrder& clustered) {
  std::vector<std::size_t> position(static_cast<std::size_t>(graph.size()), clustered.order.size());
  ASSERT_EQ(clustered.order.size(), position.size());
  for (std::size_t i = 0; i < clustered.order.size(); ++i) position[static_cast<std::size_t>(clustered.order[i])] = i;
  const OpEdges edges = successors(graph);
  for (OpId op = 0; op < graph.size(); ++op) {
    ASSERT_LT(position[static_cast<std::size_t>(op)], clustered.order.size()) << op << " is missing";
    for (const OpId next : edges.of(op)) {
      ASSERT_LT(position[static_cast<std::size_t>(op)], position[static_cast<std::size_t>(next)]);
    }
  }
  std::size_t begin = 0;
  for (const std::size_t end : clustered.item_ends) {
    ASSERT_LT(begin, end);
    begin = end;
  }
  ASSERT_EQ(begin, clustered.order.size());
}

// No path leaves an item and comes back: items numbered along the order never fall along an edge, and of a path that
// starts and ends in one item every operator is in it.
void expect_convex_items(const Graph& graph, const ClusterOrder& clustered) {
  std::vector<std::size_t> item(static_cast<std::size_t>(graph.size()));
  std::size_t begin = 0;
  for (std::size_t i = 0; i < clustered.item_ends.size(); ++i) {
    for (; begin < clustered.item_ends[i]; ++begin) item[static_cast<std::size_t>(clustered.order[begin])] = i;
  }
  const OpEdges edges = successors(graph);
  for (OpId op = 0; op < graph.size(); ++op) {
    for (const OpId next : edges.of(op)) {
      ASSERT_LE(item[static_cast<std::size_t>(op)], item[static_cast<std::size_t>(next)]);
    }
  }
}

TEST(ClusterOrder, IsTopologicalAndItsItemsAreConvexOnRandomGraphs) {
  for (int size = 1; size <= 40; size += 3) {
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      const Graph graph = random_graph(size, seed, 1 + static_cast<int>(seed % 12));
      for (const double most : {0.0, 2.0, 7.0, 1e9}) {
        const ClusterOrder clustered = cluster(graph, most);
        expect_topological_cover(graph, clustered);
        expect_convex_items(graph, clustered);
      }
    }
  }
}

TEST(ClusterOrder, CutNodesAreThoseThatEveryPathPasses) {
  // Held against the definition: without a cut node, no path leads from a first to a last operator.
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Graph graph = random_graph(2 + static_cast<int>(seed % 12), seed, 1 + static_cast<int>(seed % 5));
    const OpEdges edges = successors(graph), back = predecessors(edges);
    std::vector<OpId> expected;
    for (OpId without = 0; without < graph.size(); ++without) {
      std::vector<bool> reached(static_cast<std::size_t>(graph.size()), false);
      bool passed = false;
      for (OpId op = 0; op < graph.size(); ++op) {
        bool here = back.of(op).empty();
        for (const OpId from : back.of(op)) here = here || reached[static_cast<std::size_t>(from)];
        reached[static_cast<std::size_t>(op)] = here && op != without;
        passed = passed || (reached[static_cast<std::size_t>(op)] && edges.of(op).empty());
      }
      if (!passed) expected.push_back(without);
    }
    std::vector<OpId> found = cut_nodes(graph, edges);
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, expected) << seed;
  }
}

TEST(ClusterOrder, BranchesAreContractedWhenCheapAndApartWhenDear) {
  const Graph graph = branches();
  EXPECT_THAT(names(graph, cut_nodes(graph, successors(graph))), ElementsAre("n0", "join"));
  EXPECT_EQ(items(graph, cluster(graph, 4)), "n0 | a0 a1 b0 b1 | join | ");
  EXPECT_EQ(items(graph, cluster(graph, 2)), "n0 | a0 a1 | b0 b1 | join | ");
  EXPECT_EQ(items(graph, cluster(graph, 1)), "n0 | a0 | a1 | b0 | b1 | join | ");
}

TEST(ClusterOrder, TheBranchWithMoreCostForItsBytesComesFirst) {
  const auto figures = [](std::int64_t bytes) { return OpFigures{.forward_s = 1, .output_bytes = bytes}; };
  GraphBuilder builder("two");
  const TensorId x = builder.add_cost("x", {}, figures(1));
  TensorId wide = builder.add_cost("wide0", {x}, figures(1));
  wide = builder.add_cost("wide1", {wide}, figures(9));
  TensorId narrow = builder.add_cost("narrow0", {x}, figures(9));
  narrow = builder.add_cost("narrow1", {narrow}, figures(1));
  builder.add_cost("join", {wide, narrow}, figures(1));
  const Graph graph = builder.build();
  EXPECT_EQ(items(graph, cluster(graph, 1)), "x | narrow0 | narrow1 | wide0 | wide1 | join | ");
}

TEST(ClusterOrder, SkipsOfSkipsAreTakenApartLevelByLevel) {
  // A U: x0 is read by x1 and by y0, x1 by x2 and y1; x2 → y1 → y0.
  GraphBuilder builder("u");
  const OpFigures one{.forward_s = 1, .output_bytes = 1};
  const TensorId x0 = builder.add_cost("x0", {}, one);
  const TensorId x1 = builder.add_cost("x1", {x0}, one);
  const TensorId x2 = builder.add_cost("x2", {x1}, one);
  const TensorId y1 = builder.add_cost("y1", {x2, x1}, one);
  builder.add_cost("y0", {y1, x0}, one);
  const Graph graph = builder.build();
  EXPECT_EQ(items(graph, cluster(graph, 0)), "x0 | x1 | x2 | y1 | y0 | ");
  EXPECT_EQ(items(graph, cluster(graph, 1)), "x0 | x1 | x2 | y1 | y0 | ");
  EXPECT_EQ(items(graph, cluster(graph, 3)), "x0 | x1 x2 y1 | y0 | ");
}

TEST(ClusterOrder, ChainsStayAsTheyAre) {
  const Graph graph = chain(30);
  const ClusterOrder clustered = cluster(graph, 1e9);
  EXPECT_EQ(clustered.order, topological_order(graph, TieBreak::depth_first));
  EXPECT_EQ(clustered.item_ends.size(), 30U);  // nothing to contract: every operator is a cut node
  EXPECT_EQ(cluster(ladder(40), 0).item_ends.size(), 81U);
}

TEST(ClusterOrder, PartsWithoutAnEdgeBetweenThemStayTogether) {
  GraphBuilder builder("apart");
  const OpFigures one{.forward_s = 1, .output_bytes = 1};
  const TensorId a = builder.add_cost("a0", {}, one);
  const TensorId b = builder.add_cost("b0", {}, one);
  builder.add_cost("a1", {a}, one);
  builder.add_cost("b1", {b}, one);
  const Graph graph = builder.build();
  EXPECT_EQ(items(graph, cluster(graph, 2)), "a0 a1 | b0 b1 | ");
}

TEST(ClusterOrder, NestedSkipsDoNotBlowUp) {
  // 4,000 operators whose skips are nested 2,000 deep: past the deepest level it looks at, the depth-first order stays.
  GraphBuilder builder("deep");
  const OpFigures one{.forward_s = 1, .output_bytes = 1};
  std::vector<TensorId> down;
  for (int i = 0; i < 2000; ++i) {
    down.push_back(
        builder.add_cost(fmt::format("d{}", i), i > 0 ? std::vector{down.back()} : std::vector<TensorId>{}, one));
  }
  TensorId up = down.back();
  for (int i = 1998; i >= 0; --i) {
    up = builder.add_cost(fmt::format("u{}", i), {up, down[static_cast<std::size_t>(i)]}, one);
  }
  const Graph graph = builder.build();
  expect_topological_cover(graph, cluster(graph, 10));
}

}  // namespace
}  // namespace millrace::partitioners
