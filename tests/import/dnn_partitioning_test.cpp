// dnn-partitioning JSON: folding, order, transfers and figures, against counts by hand.
#include "import/dnn_partitioning.h"

#include <gmock/gmock.h>

#include "tests/import/samples.h"

namespace millrace::import {
namespace {

using testing::ElementsAre;

const SplitModel& split_of(const Graph& graph) { return std::get<SplitModel>(graph.carried()->extra); }

Graph sample() { return read_dnn_partitioning(samples::split().text, samples::split().file); }

std::vector<OpId> inputs_of(const Graph& graph, OpId op) {
  std::vector<OpId> producers;
  for (const TensorId input : graph.op(op).inputs) producers.push_back(graph.tensor(input).producer);
  return producers;
}

std::vector<std::string> names_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const Operator& op : graph.operators()) names.push_back(op.name);
  return names;
}

// Class 8's backward node feeds 5 and 5 feeds class 7's, so 5 stands between them, mirrored: 7, 5, 8.
TEST(DnnPartitioning, OperatorsAreColourClassesInForwardOrder) {
  const Graph graph = sample();
  EXPECT_EQ(graph.name(), "split");
  EXPECT_EQ(graph.carried()->format, "dnn-partitioning");
  EXPECT_THAT(names_of(graph), ElementsAre("one", "node5", "two.2", "two.6"));
  EXPECT_THAT(inputs_of(graph, 0), ElementsAre());
  EXPECT_THAT(inputs_of(graph, 1), ElementsAre(0));
  EXPECT_THAT(inputs_of(graph, 2), ElementsAre(0, 1));
  EXPECT_THAT(inputs_of(graph, 3), ElementsAre(0));
}

TEST(DnnPartitioning, SumsAreOfAllNodesOfAClass) {
  const Graph graph = sample();
  const SplitModel& split = split_of(graph);
  ASSERT_EQ(split.ops.size(), 4U);
  EXPECT_EQ(split.ops[0].accelerator_s, 9.5);
  EXPECT_EQ(split.ops[0].cpu_s, 90);
  EXPECT_EQ(split.ops[0].bytes, 201);
  EXPECT_EQ(split.ops[0].nodes, 2);
  EXPECT_EQ(split.ops[1].accelerator_s, 16);
  EXPECT_EQ(split.ops[2].accelerator_s, 6);
  EXPECT_TRUE(split.ops[2].on_accelerator);
  EXPECT_FALSE(split.ops[3].on_accelerator);
  EXPECT_EQ(split.accelerators, 2);
  EXPECT_EQ(split.cpus, 1);
  EXPECT_EQ(split.memory_bytes, 1000);
}

TEST(DnnPartitioning, EachProducingNodeTransfersOnceToOtherOperators) {
  const Graph graph = sample();
  const std::vector<SplitModel::Transfer>& transfers = split_of(graph).transfers;
  ASSERT_EQ(transfers.size(), 3U);  // node 2 feeds its twin only
  EXPECT_EQ(transfers[0].from, 0);
  EXPECT_THAT(transfers[0].to, ElementsAre(2, 3));
  EXPECT_EQ(transfers[0].seconds, 0.25);
  EXPECT_EQ(transfers[1].from, 2);  // node 3
  EXPECT_THAT(transfers[1].to, ElementsAre(1));
  EXPECT_EQ(transfers[1].seconds, 0.125);
  EXPECT_EQ(transfers[2].from, 1);  // node 5
  EXPECT_THAT(transfers[2].to, ElementsAre(0));
  EXPECT_EQ(transfers[2].seconds, 2);
}

TEST(DnnPartitioning, FiguresSplitForwardAndBackward) {
  const Graph graph = sample();
  const OpFigures sized{.forward_s = 1.5, .backward_input_s = 4, .backward_weight_s = 4, .parameter_bytes = 201};
  EXPECT_EQ(*graph.figures(0), sized);
  const OpFigures sizeless{.forward_s = 2, .backward_input_s = 4};
  EXPECT_EQ(*graph.figures(2), sizeless);
}

// In the layer files the backward edges run in forward direction: read as an order they would put b before a.
TEST(DnnPartitioning, BackwardEdgesOfTwinsGiveNoOrder) {
  const auto node = [](int id, int colour, bool backward) {
    return "{\"id\": " + std::to_string(id) + ", \"colorClass\": " + std::to_string(colour) +
           ", \"supportedOnFpga\": 1, \"cpuLatency\": 1, \"fpgaLatency\": 1, \"size\": 1, \"isBackwardNode\": " +
           (backward ? "1}" : "0}");
  };
  for (const bool forward_direction : {true, false}) {
    const std::string edge =
        forward_direction ? R"({"sourceId": 3, "destId": 4, "cost": 1})" : R"({"sourceId": 4, "destId": 3, "cost": 1})";
    const Graph graph =
        read_dnn_partitioning(R"({"maxSizePerFPGA": 1, "maxFPGAs": 1, "maxCPUs": 0, "nodes": [)" + node(1, 1, false) +
                                  "," + node(2, 2, false) + "," + node(3, 1, true) + "," + node(4, 2, true) +
                                  R"(], "edges": [{"sourceId": 1, "destId": 2, "cost": 0}, )" + edge + "]}",
                              "twins.json");
    EXPECT_THAT(names_of(graph), ElementsAre("node1", "node2"));
    EXPECT_THAT(inputs_of(graph, 1), ElementsAre(0));
    EXPECT_EQ(split_of(graph).transfers.size(), 2U);
  }
}

// Classes 1 = {a, c} and 2 = {b}: a → b → c is a cycle of the classes, and one operator.
TEST(DnnPartitioning, ClassesOnACycleAreOneOperator) {
  const std::string rest =
      R"(, "supportedOnFpga": 1, "cpuLatency": 1, "fpgaLatency": 2, "size": 4, "isBackwardNode": 0})";
  const Graph graph = read_dnn_partitioning(
      R"({"maxSizePerFPGA": 1, "maxFPGAs": 1, "maxCPUs": 0, "nodes": [{"id": 0)" + rest +
          R"(, {"id": 1, "colorClass": 1)" + rest + R"(, {"id": 2, "colorClass": 2)" + rest +
          R"(, {"id": 3, "colorClass": 1)" + rest +
          R"(], "edges": [{"sourceId": 0, "destId": 1, "cost": 1}, {"sourceId": 1, "destId": 2, "cost": 1},
           {"sourceId": 2, "destId": 3, "cost": 1}]})",
      "cycle.json");
  ASSERT_EQ(graph.size(), 2);
  EXPECT_EQ(split_of(graph).ops[1].nodes, 3);
  EXPECT_EQ(split_of(graph).ops[1].accelerator_s, 6);
  EXPECT_EQ(split_of(graph).transfers.size(), 1U);
  EXPECT_EQ(graph.figures(1)->parameter_bytes, 12);
}

}  // namespace
}  // namespace millrace::import
