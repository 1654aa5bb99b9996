// Bytes of outputs, parameters, kept tensors and traffic, worked out by hand on small graphs.
#include "graph/footprint.h"

#include <gmock/gmock.h>

#include "tests/graph/small_graphs.h"

namespace millrace {
namespace {

using testing::ElementsAre;

std::vector<OpId> ops(const Graph& graph, std::initializer_list<const char*> names) {
  std::vector<OpId> ids;
  for (const char* name : names) ids.push_back(graph.find_op(name));
  return ids;
}

TEST(Footprint, ATensorThatTwoOperatorsKeepCountsOnce) {
  const Graph graph = test::skip_graph();
  // relu keeps its output, which is also what fc2 keeps of its input.
  const SavedTensors both = saved_tensors(graph, ops(graph, {"relu", "fc2"}));
  EXPECT_THAT(both.tensors, ElementsAre(graph.find_tensor("relu.output")));
  EXPECT_EQ(saved_bytes_per_sample(graph, ops(graph, {"relu"}), 4), Bytes(12));
  EXPECT_EQ(saved_bytes_per_sample(graph, ops(graph, {"fc2"}), 4), Bytes(12));
  EXPECT_EQ(saved_bytes_per_sample(graph, ops(graph, {"relu", "fc2"}), 4), Bytes(12));
  EXPECT_EQ(saved_bytes_per_sample(graph, ops(graph, {"relu", "fc2"}), 8), Bytes(24));
}

TEST(Footprint, OfAWholeGraph) {
  const Graph graph = test::skip_graph();
  std::vector<OpId> all;
  for (OpId id = 0; id < graph.size(); ++id) all.push_back(id);
  // input 4, relu 3, add 3, logits 2 reals and one label.
  EXPECT_EQ(saved_bytes_per_sample(graph, all, 8), Bytes((4 + 3 + 3 + 2) * 8 + 4));
  EXPECT_EQ(parameter_bytes(graph, all, 4), Bytes(4 * graph.parameter_count()));
}

TEST(Footprint, TiedParametersCountOnce) {
  const Graph graph = test::tied_graph();
  EXPECT_EQ(parameter_bytes(graph, ops(graph, {"table"}), 4), Bytes(196));
  EXPECT_EQ(parameter_bytes(graph, ops(graph, {"table", "middle", "head"}), 4), Bytes(196));
}

TEST(Footprint, OutputsAndTraffic) {
  const Graph graph = test::skip_graph();
  EXPECT_EQ(output_bytes_per_sample(graph, graph.find_op("loss"), 4), Bytes(8));
  const Traffic fc1 = forward_traffic(graph, graph.find_op("fc1"), 4);
  EXPECT_EQ(fc1.per_sample, Bytes(4 * (4 + 3)));
  EXPECT_EQ(fc1.per_call, Bytes(4 * (12 + 3)));
  EXPECT_EQ(flops(graph, graph.find_op("fc1")).forward, 24.0);
}

}  // namespace
}  // namespace millrace
