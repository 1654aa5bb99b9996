// Orders respect all edges; each tie-break does what its name says.
#include "partitioners/common/topological_order.h"

#include <algorithm>

#include <gmock/gmock.h>

#include "tests/plan/table_cost.h"

namespace millrace::partitioners {
namespace {

using testing::ElementsAre;
using testing_support::branches;
using testing_support::chain;
using testing_support::ladder;

std::vector<std::string> ordered_names(const Graph& graph, const Order& order) {
  std::vector<std::string> result;
  for (const OpId op : order) result.push_back(graph.op(op).name);
  return result;
}

TEST(TopologicalOrder, RespectsEveryEdge) {
  for (const Graph& graph : {chain(7), ladder(5), branches()}) {
    for (const Order& order : topological_orders(graph)) {
      ASSERT_EQ(static_cast<std::int64_t>(order.size()), graph.size());
      std::vector<std::size_t> position(order.size());
      for (std::size_t i = 0; i < order.size(); ++i) position[static_cast<std::size_t>(order[i])] = i;
      for (OpId op = 0; op < graph.size(); ++op) {
        for (const TensorId input : graph.op(op).inputs) {
          const OpId producer = graph.tensor(input).producer;
          if (producer < 0) continue;
          EXPECT_LT(position[static_cast<std::size_t>(producer)], position[static_cast<std::size_t>(op)]);
        }
      }
    }
  }
}

TEST(TopologicalOrder, DepthFirstKeepsBranchesTogether) {
  const Graph graph = branches();
  EXPECT_THAT(ordered_names(graph, topological_order(graph, TieBreak::depth_first)),
              ElementsAre("n0", "a0", "a1", "b0", "b1", "join"));
}

TEST(TopologicalOrder, LongestPathTakesTheLongBranchFirst) {
  GraphBuilder builder("uneven");
  const TensorId x = builder.input("x", {Dims{1}});
  const TensorId s = builder.add({.name = "short", .kind = "relu", .inputs = {x}});
  TensorId l = builder.add({.name = "long0", .kind = "relu", .inputs = {x}});
  l = builder.add({.name = "long1", .kind = "relu", .inputs = {l}});
  builder.add({.name = "join", .kind = "add", .inputs = {s, l}});
  const Graph graph = builder.build();
  EXPECT_THAT(ordered_names(graph, topological_order(graph, TieBreak::longest_path)),
              ElementsAre("long0", "short", "long1", "join"));
  EXPECT_THAT(ordered_names(graph, topological_order(graph, TieBreak::depth_first)),
              ElementsAre("short", "long0", "long1", "join"));
}

TEST(TopologicalOrder, FewestLiveBytesFreesALargeTensorFirst) {
  // wide (9 numbers) is read by narrow; the other branch keeps 3 numbers alive longer.
  GraphBuilder builder("live");
  const TensorId x = builder.input("x", {Dims{3}});
  const TensorId y = builder.input("y", {Dims{9}});
  const TensorId keep = builder.add({.name = "keep", .kind = "relu", .inputs = {x}});
  const TensorId wide = builder.add({.name = "wide", .kind = "relu", .inputs = {y}});
  const TensorId more = builder.add({.name = "more", .kind = "relu", .inputs = {keep}});
  const TensorId narrow = builder.add(
      {.name = "narrow", .kind = "linear", .inputs = {wide}, .attributes = {{"out_features", std::int64_t{3}}}});
  builder.add({.name = "join", .kind = "add", .inputs = {more, narrow}});
  const Graph graph = builder.build();
  // wide frees its input of 9 and adds 9; narrow then frees 9 and adds 3: it comes as soon as it can.
  EXPECT_THAT(ordered_names(graph, topological_order(graph, TieBreak::fewest_live_bytes)),
              ElementsAre("keep", "wide", "narrow", "more", "join"));
}

TEST(TopologicalOrder, LastBranchFirstTakesBranchesTheOtherWay) {
  GraphBuilder builder("branches");
  const TensorId in = builder.add_cost("in", {}, {.forward_s = 1, .output_bytes = 1});
  const TensorId a = builder.add_cost("a", {in}, {.forward_s = 1, .output_bytes = 1});
  const TensorId b = builder.add_cost("b", {in}, {.forward_s = 1, .output_bytes = 1});
  builder.add_cost("add", {a, b}, {.forward_s = 1, .output_bytes = 1});
  const Graph graph = builder.build();
  EXPECT_THAT(ordered_names(graph, topological_order(graph, TieBreak::last_branch_first)),
              ElementsAre("in", "b", "a", "add"));
}

TEST(TopologicalOrder, ChainsHaveOneOrder) { EXPECT_EQ(topological_orders(chain(20)).size(), 1U); }

}  // namespace
}  // namespace millrace::partitioners
