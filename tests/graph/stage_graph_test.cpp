// Borders of stages: skipping tensors, data, losses and tied parameters.
#include "graph/stage_graph.h"

#include <gmock/gmock.h>

#include "tests/graph/small_graphs.h"

namespace millrace {
namespace {

using testing::ElementsAre;

StageGraph stage(const Graph& graph, std::initializer_list<const char*> names) {
  std::vector<OpId> ids;
  for (const char* name : names) ids.push_back(graph.find_op(name));
  return make_stage_graph(graph, ids);
}

std::vector<std::string> names(const Graph& graph, const std::vector<TensorId>& ids) {
  std::vector<std::string> all;
  for (const TensorId id : ids) all.push_back(graph.tensor(id).name);
  return all;
}

TEST(StageGraph, SkippingTensorsCrossEveryBorderBetween) {
  const Graph graph = test::skip_graph();
  const StageGraph first = stage(graph, {"fc1"});
  EXPECT_THAT(names(graph, first.inputs), ElementsAre("input"));
  EXPECT_THAT(names(graph, first.outputs), ElementsAre("fc1.output"));
  EXPECT_THAT(names(graph, first.gradient_outputs), ElementsAre("fc1.output"));
  EXPECT_THAT(names(graph, first.gradient_inputs), ElementsAre());
  EXPECT_THAT(names(graph, first.parameters), ElementsAre("fc1.weight", "fc1.bias"));

  const StageGraph middle = stage(graph, {"relu", "fc2"});
  EXPECT_THAT(names(graph, middle.inputs), ElementsAre("fc1.output"));
  EXPECT_THAT(names(graph, middle.outputs), ElementsAre("fc2.output"));

  const StageGraph last = stage(graph, {"add", "head", "loss"});
  EXPECT_THAT(names(graph, last.inputs), ElementsAre("labels", "fc1.output", "fc2.output"));
  EXPECT_THAT(names(graph, last.gradient_inputs), ElementsAre("fc1.output", "fc2.output"));
  EXPECT_THAT(names(graph, last.outputs), ElementsAre("loss.output", "loss.correct"));
  EXPECT_THAT(names(graph, last.gradient_outputs), ElementsAre());
}

TEST(StageGraph, OutputReadInsideAndOutsideIsAnOutput) {
  const Graph graph = test::skip_graph();
  const StageGraph front = stage(graph, {"fc1", "relu", "fc2"});
  EXPECT_THAT(names(graph, front.outputs), ElementsAre("fc1.output", "fc2.output"));
  EXPECT_THAT(names(graph, front.inputs), ElementsAre("input"));
}

TEST(StageGraph, WholeGraphHasOnlyDataAndLoss) {
  const Graph graph = test::skip_graph();
  const StageGraph whole = stage(graph, {"fc1", "relu", "fc2", "add", "head", "loss"});
  EXPECT_THAT(names(graph, whole.inputs), ElementsAre("input", "labels"));
  EXPECT_THAT(names(graph, whole.outputs), ElementsAre("loss.output", "loss.correct"));
  EXPECT_EQ(whole.parameters.size(), graph.parameters().size());
}

TEST(StageGraph, TiedParameterIsOnEveryStageThatUsesIt) {
  const Graph graph = test::tied_graph();
  EXPECT_THAT(names(graph, stage(graph, {"table"}).parameters), ElementsAre("table.weight"));
  EXPECT_THAT(names(graph, stage(graph, {"middle", "head", "loss"}).parameters), ElementsAre("table.weight"));
}

TEST(StageGraph, BuffersBelongToTheirOperator) {
  GraphBuilder builder("norms");
  const TensorId x = builder.input("x", {.dims = {4}});
  const TensorId y = builder.add({.name = "bn1", .kind = "batch_norm", .inputs = {x}});
  builder.add({.name = "bn2", .kind = "batch_norm", .inputs = {y}});
  const Graph graph = builder.build();
  EXPECT_THAT(names(graph, stage(graph, {"bn2"}).buffers), ElementsAre("bn2.running_mean", "bn2.running_var"));
}

}  // namespace
}  // namespace millrace
