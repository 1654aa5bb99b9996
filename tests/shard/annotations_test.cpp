// Annotations by pattern: three give Megatron's split at any depth; faults name both sides.
#include <gmock/gmock.h>

#include "base/errors.h"
#include "models/families.h"
#include "shard/annotations.h"
#include "tests/shard/cut_graph.h"

namespace millrace::shard {
namespace {

using ::testing::AllOf;
using testing::CutGraph;
using ::testing::HasSubstr;

Annotation tensor(std::string pattern, int dim) {
  Annotation one{.tensor = std::move(pattern), .op = "", .axis = "", .dim = dim, .weights = {}, .where = ""};
  return one;
}

Graph gpt(std::int64_t layers, std::int64_t heads = 2) {
  return models::make_gpt(
      {.layers = layers, .width = 12, .heads = heads, .sequence = 4, .vocabulary = 11, .tied = true});
}

std::string fault(const std::vector<Annotation>& annotations, std::vector<Axis> axes = {{"tensor", 2}}) {
  const Graph graph = gpt(2);
  CutGraph cut(graph, 2, std::move(axes));
  try {
    resolve(annotations, graph, cut.tensors, cut.mesh);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "none";
}

TEST(Annotations, ThreeGiveTheMegatronSplitAtAnyDepth) {
  const std::vector<Annotation> three{tensor("blocks.*.attention.qkv.weight", 0), tensor("blocks.*.mlp.up.weight", 0),
                                      tensor("embedding.token.weight", 0)};
  ASSERT_LE(three.size(), 3U);
  for (const std::int64_t layers : {1, 2, 12}) {
    const Graph graph = gpt(layers);
    CutGraph cut(graph, 2, {{"tensor", 2}});
    const std::vector<Given> given = resolve(three, graph, cut.tensors, cut.mesh);
    EXPECT_EQ(given.size(), static_cast<std::size_t>(2 * layers + 1));
    const ShardedGraph sharded = cut.propagate(given);
    int columns = 0, rows = 0, reduced = 0;
    for (const TensorId id : graph.parameters()) {
      const Property kept = sharded.decision.placements[static_cast<std::size_t>(id)][0];
      const bool matrix = graph.tensor(id).shape.dims.size() == 2;
      if (matrix && kept == split(0)) ++columns;
      if (matrix && kept == split(1)) ++rows;
    }
    for (const Instruction& one : sharded.forward) {
      if (one.kind == Instruction::Kind::convert && !one.step.local()) ++reduced;
    }
    EXPECT_EQ(columns, 2 * layers + 1);
    EXPECT_EQ(rows, 2 * layers);
    EXPECT_EQ(reduced, 2 * layers + 1);
  }
}

TEST(Annotations, OperatorsStandForTheirOutput) {
  const Graph graph = gpt(2);
  CutGraph cut(graph, 2, {{"tensor", 2}});
  Annotation one{.tensor = "", .op = "blocks.*.add1", .axis = "tensor", .dim = 1, .weights = {3, 1}, .where = ""};
  const auto given = resolve({one}, graph, cut.tensors, cut.mesh);
  ASSERT_EQ(given.size(), 2U);
  EXPECT_EQ(given[0].tensor, graph.find_tensor("blocks.0.add1.output"));
  EXPECT_EQ(cut.mesh.ratio(given[0].property.ratio), (std::vector<double>{3, 1}));
}

TEST(Annotations, ExactNamesWinOverPatterns) {
  const Graph graph = gpt(2);
  CutGraph cut(graph, 2, {{"tensor", 2}});
  for (const bool exact_first : {true, false}) {
    std::vector<Annotation> both{tensor("blocks.1.mlp.up.weight", 1), tensor("blocks.*.mlp.up.weight", 0)};
    if (!exact_first) std::swap(both[0], both[1]);
    const auto given = resolve(both, graph, cut.tensors, cut.mesh);
    ASSERT_EQ(given.size(), 2U);
    EXPECT_EQ(given[0].property, split(0));
    EXPECT_EQ(given[1].property, split(1));
  }
}

TEST(Annotations, FaultsAreToldTogetherWithBothSides) {
  EXPECT_THAT(fault({tensor("blocks.*.mlp.pu.weight", 0)}), HasSubstr("'blocks.*.mlp.pu.weight' matches no tensor"));
  EXPECT_THAT(fault({tensor("blocks.0.mlp.upp.weight", 0)}), HasSubstr("did you mean 'blocks.0.mlp.up.weight'?"));
  Annotation first = tensor("blocks.*.mlp.up.weight", 0), second = tensor("blocks.1.mlp.*.weight", 1);
  first.where = "e.yaml:3:5";
  second.where = "e.yaml:4:5";
  EXPECT_THAT(fault({first, second}), AllOf(HasSubstr("e.yaml:4:5: tensor 'blocks.1.mlp.*.weight' split 1 contradicts"),
                                            HasSubstr("tensor 'blocks.*.mlp.up.weight' split 0 of e.yaml:3:5"),
                                            HasSubstr("'blocks.1.mlp.up.weight'")));
  EXPECT_THAT(fault({tensor("nothing", 0), tensor("input", 7)}),
              AllOf(HasSubstr("'nothing' matches no tensor"), HasSubstr("found 7, allowed: 0 to 1")));
  Annotation axis = tensor("input", 0);
  axis.axis = "tenso";
  EXPECT_THAT(fault({axis}), HasSubstr("unknown mesh axis 'tenso' (did you mean 'tensor'?)"));
  Annotation weights = tensor("input", 0);
  weights.weights = {1, 2, 3};
  EXPECT_THAT(fault({weights}), HasSubstr("found 3 weights"));
  Annotation partial = tensor("embedding.token.weight", 0);
  partial.kind = Property::Kind::partial_sum;
  EXPECT_THAT(fault({partial}), HasSubstr("no partial sum"));
}

TEST(Annotations, WhatCannotBeCutIsRefusedWithSizes) {
  // Two heads of 18 numbers each do not go to four devices.
  EXPECT_THAT(fault({tensor("blocks.*.attention.qkv.weight", 0)}, {{"tensor", 4}}),
              AllOf(HasSubstr("'blocks.0.attention.qkv.weight' has 36 in dimension 0"),
                    HasSubstr("cut at multiples of 18 only"), HasSubstr("has 4 devices, allowed: at most 2")));
}

TEST(Annotations, ThreeHeadsOnTwoDevicesAreCutUnevenly) {
  const Graph graph = gpt(1, 3);
  CutGraph cut(graph, 2, {{"tensor", 2}});
  resolve({tensor("blocks.*.attention.qkv.weight", 0)}, graph, cut.tensors, cut.mesh);
  const TensorView view = cut.tensors.view(graph.find_tensor("blocks.0.attention.qkv.weight"));
  EXPECT_EQ(box_of(view, {split(0)}, cut.mesh, 0)[0], (Interval{0, 24}));
  EXPECT_EQ(box_of(view, {split(0)}, cut.mesh, 1)[0], (Interval{24, 36}));
}

}  // namespace
}  // namespace millrace::shard
