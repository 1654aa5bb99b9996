// Graph files: units, defaults, kinds with kernels, tied weights; and what is written reads back as the same graph.
#include "import/graph_file.h"

#include <gmock/gmock.h>

#include "graph/footprint.h"
#include "graph/graph_builder.h"
#include "import/import.h"
#include "models/registry.h"
#include "plan/memory.h"
#include "tests/import/samples.h"

namespace millrace::import {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kMiB = 1 << 20;

Graph read(const std::string& operators, const std::string& head = "") {
  return read_graph_file("millrace_graph: 1\n" + head + "operators:\n" + operators, "test.yaml").graph;
}

TEST(GraphFile, TheExampleOfTheInterfaces) {
  const GraphFile file = read_graph_file(samples::graph_yaml().text, "x.yaml");
  const Graph& graph = file.graph;
  EXPECT_EQ(file.batch, 1);
  EXPECT_EQ(graph.name(), "two-branches");
  ASSERT_EQ(graph.size(), 5);
  const OpFigures first{.forward_s = 0.002,
                        .backward_input_s = 0.002,
                        .backward_weight_s = 0.002,
                        .parameter_bytes = 4 * kMiB,
                        .output_bytes = kMiB,
                        .saved_bytes = 3 * kMiB};
  EXPECT_EQ(*graph.figures(0), first);
  const OpFigures second{.forward_s = 0.005,
                         .backward_input_s = 0.005,
                         .backward_weight_s = 0.005,
                         .parameter_bytes = 16 * kMiB,
                         .output_bytes = kMiB,
                         .saved_bytes = kMiB};
  EXPECT_EQ(*graph.figures(1), second);
  EXPECT_THAT(graph.op(3).inputs, ElementsAre(graph.op(1).outputs[0], graph.op(2).outputs[0]));
  // 1 MiB are 262,144 reals.
  EXPECT_EQ(graph.tensor(graph.op(4).parameters[0]).shape.dims, (Dims{10, 262144}));
  EXPECT_EQ(flops(graph, 4).forward, 2.0 * 10 * 262144);
  EXPECT_FALSE(graph.trainable());
}

TEST(GraphFile, DefaultsOfCostOperators) {
  const Graph graph = read(R"(
  - {name: a, kind: cost}
  - {name: b, kind: cost, inputs: [a], forward: 3 us, output: 5 kB, x-note: mine}
  - {name: c, kind: cost, inputs: [a], forward: 3 us, backward: 0 s}
  - {name: d, kind: cost, inputs: [a], backward_weight: 1 min, layer: last}
)");
  EXPECT_EQ(graph.name(), "test");
  EXPECT_EQ(*graph.figures(0), OpFigures{});
  const OpFigures twice{.forward_s = 3e-6,
                        .backward_input_s = 3e-6,
                        .backward_weight_s = 3e-6,
                        .output_bytes = 5000,
                        .saved_bytes = 5000};
  EXPECT_EQ(*graph.figures(1), twice);
  EXPECT_EQ(*graph.figures(2), OpFigures{.forward_s = 3e-6});
  EXPECT_EQ(*graph.figures(3), OpFigures{.backward_weight_s = 60});
  EXPECT_EQ(graph.op(3).layer, "last");
}

// REPORTS M04: figures are for the stated samples, the graph counts by sample, and only what is by sample grows.
TEST(GraphFile, MicroBatchScalesWhatGrowsWithSamples) {
  const std::string op = "  - {name: a, kind: cost, forward: 8 ms, parameters: 10 B, output: 40 B, saved: 41 B}\n";
  const Graph one = read(op);
  const Graph four = read(op, "micro_batch: 4\n");
  const OpFigures quarter{.forward_s = 0.002,
                          .backward_input_s = 0.002,
                          .backward_weight_s = 0.002,
                          .parameter_bytes = 10,
                          .output_bytes = 10,
                          .saved_bytes = 11};
  EXPECT_EQ(*four.figures(0), quarter);
  const std::vector<OpId> ops{0};
  for (const Graph* graph : {&one, &four}) {
    const plan::AnalyticBytes bytes(*graph, {});
    const plan::StageFootprint single = bytes.footprint(ops, 1), whole = bytes.footprint(ops, 4);
    EXPECT_GT(single.per_slot.value(), 0);
    EXPECT_EQ(whole.per_slot, single.per_slot * 4);
    EXPECT_EQ(whole.weights, single.weights);
  }
}

TEST(GraphFile, KindsWithKernels) {
  const GraphFile file = read_graph_file(samples::graph_json().text, "x.json");
  const Graph& graph = file.graph;
  EXPECT_EQ(file.batch, 8);
  ASSERT_EQ(graph.size(), 5);
  EXPECT_EQ(graph.op(1).attributes.real("probability"), 0.5);
  EXPECT_EQ(graph.op(1).layer, "first");
  EXPECT_EQ(graph.figures(2)->forward_s, 0.0015);
  EXPECT_EQ(graph.figures(2)->output_bytes, 3);  // 5 bytes of two samples, rounded up
  EXPECT_EQ(graph.op(3).parameters, graph.op(0).parameters);
  EXPECT_EQ(graph.loss(), 4);
  EXPECT_EQ(graph.parameter_count(), 44);
  EXPECT_EQ(graph.tensor(graph.inputs()[0]).shape.element, ElementType::index);
}

TEST(GraphFile, BatchIsThatOfTheMicroBatchUnlessGiven) {
  const std::string op = "operators: [{name: a, kind: cost}]\n";
  EXPECT_EQ(read_graph_file("millrace_graph: 1\nmicro_batch: 6\n" + op, "x").batch, 6);
  EXPECT_EQ(read_graph_file("millrace_graph: 1\nmicro_batch: 6\nbatch: 48\n" + op, "x").batch, 48);
}

void expect_equal(const Graph& a, const Graph& b) {
  EXPECT_EQ(a.digest(), b.digest());
  ASSERT_EQ(a.size(), b.size());
  ASSERT_EQ(a.carried() == nullptr, b.carried() == nullptr);
  EXPECT_TRUE(a.carried() == nullptr || *a.carried() == *b.carried());
  for (OpId id = 0; id < a.size(); ++id) {
    EXPECT_EQ(a.op(id).layer, b.op(id).layer);
    ASSERT_EQ(a.figures(id) == nullptr, b.figures(id) == nullptr);
    if (a.figures(id) == nullptr) continue;
    EXPECT_EQ(*a.figures(id), *b.figures(id));
  }
}

void expect_round_trip(const Graph& graph, std::int64_t batch) {
  for (const GraphForm form : {GraphForm::yaml, GraphForm::json}) {
    const std::string text = write_graph_file(graph, batch, form);
    const GraphFile again = read_graph_file(text, "again");
    expect_equal(graph, again.graph);
    EXPECT_EQ(again.batch, batch);
    EXPECT_EQ(write_graph_file(again.graph, again.batch, form), text);
  }
}

TEST(GraphFile, WhatIsWrittenReadsBackAsTheSameGraph) {
  for (const samples::Sample& sample : samples::all()) {
    SCOPED_TRACE(sample.file);
    const Imported imported = load_text(sample.text, sample.file);
    expect_round_trip(imported.graph, imported.batch);
  }
}

TEST(GraphFile, BuiltInNetworksReadBack) {
  for (const std::string name : {"mlp", "lenet", "resnet18", "vgg16"}) {
    SCOPED_TRACE(name);
    const models::Entry& entry = models::by_name(name);
    expect_round_trip(entry.make(config::defaults(entry.options)), 32);
  }
}

TEST(GraphFile, NumbersThatNoUnitShortensReadBack) {
  GraphBuilder builder("digits");
  TensorId last = builder.add_cost("0", {}, {.forward_s = 0.1 + 0.2, .parameter_bytes = 9007199254740993 >> 13});
  for (const double seconds : {1e-12, 123456.789, 1.0 / 3, 2e-6, 4.35e-3, 59.999999999999993}) {
    last = builder.add_cost(std::to_string(last), {last},
                            {.forward_s = seconds, .backward_input_s = seconds / 7, .output_bytes = 1023});
  }
  expect_round_trip(builder.build(), 1);
}

TEST(GraphFile, WritesTheUnitsOfAPerson) {
  const std::string text = write_graph_file(read_graph_file(samples::graph_yaml().text, "x").graph, 1, GraphForm::yaml);
  EXPECT_THAT(text, HasSubstr("forward: 5 ms"));
  EXPECT_THAT(text, HasSubstr("parameters: 16 MiB"));
  EXPECT_THAT(text, HasSubstr("saved: 3 MiB"));
}

}  // namespace
}  // namespace millrace::import
