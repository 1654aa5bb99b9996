// Piper JSON: degrees, variants, synchronisation by neighbour and figures, against values by hand.
#include "import/piper.h"

#include <gmock/gmock.h>

#include "tests/import/samples.h"

namespace millrace::import {
namespace {

using testing::ElementsAre;
using testing::Pair;

Graph piper_sample() { return read_piper(samples::piper().text, samples::piper().file); }

const TensorParallelModel& model_of(const Graph& graph) {
  return std::get<TensorParallelModel>(graph.carried()->extra);
}

TEST(Piper, NodesComeInTopologicalOrderWithDifferentNames) {
  const Graph graph = piper_sample();
  ASSERT_EQ(graph.size(), 3);
  EXPECT_EQ(graph.op(0).name, "layer.7");
  EXPECT_EQ(graph.op(1).name, "layer.8");
  EXPECT_EQ(graph.op(2).name, "last");
  EXPECT_THAT(graph.op(2).inputs, ElementsAre(graph.op(0).outputs[0], graph.op(1).outputs[0]));
}

TEST(Piper, TheMachineIsCarried) {
  const TensorParallelModel model = model_of(piper_sample());
  EXPECT_EQ(model.devices, 4);
  EXPECT_EQ(model.memory_bytes, 8000);
  EXPECT_EQ(model.bytes_per_second, 25.5);
  EXPECT_EQ(model.batch, 12);
  const std::string older = samples::with(samples::piper().text, "mbsInBatch", "maxBatchSize");
  EXPECT_EQ(model_of(read_piper(older, "older.json")).batch, 12);
}

TEST(Piper, DegreesAscendAndKeepTheirVariants) {
  const TensorParallelModel model = model_of(piper_sample());
  ASSERT_EQ(model.ops[0].size(), 2U);
  EXPECT_EQ(model.ops[0][0].degree, 1);
  EXPECT_EQ(model.ops[0][1].degree, 2);
  ASSERT_EQ(model.ops[0][0].variants.size(), 2U);
  const TensorParallelModel::Variant& recomputed = model.ops[0][0].variants[0];
  EXPECT_EQ(recomputed.id, "activation recomp");
  EXPECT_EQ(recomputed.time_per_sample, 4);
  EXPECT_EQ(recomputed.parameter_bytes, 10);
  EXPECT_EQ(recomputed.memory_a, 2);
  EXPECT_EQ(recomputed.memory_b, 8);
  EXPECT_THAT(model.ops[0][1].variants[0].sync_backward, ElementsAre(Pair(1, 1.0), Pair(2, 2.0)));
  EXPECT_THAT(model.ops[2][0].variants[0].sync_forward, ElementsAre(Pair(0, 2.5), Pair(1, 1.5)));
  ASSERT_EQ(model.edges.size(), 3U);
  EXPECT_EQ(model.edges[1].from, 0);
  EXPECT_EQ(model.edges[1].to, 2);
  EXPECT_EQ(model.edges[1].bytes, 100.5);
}

// A third forward, two thirds backward; the variant "vanilla", wherever it stands.
TEST(Piper, FiguresAreOfTheSmallestDegree) {
  const Graph graph = piper_sample();
  const OpFigures first{.forward_s = 1,
                        .backward_input_s = 1,
                        .backward_weight_s = 1,
                        .parameter_bytes = 10,
                        .output_bytes = 101,
                        .saved_bytes = 7};
  EXPECT_EQ(*graph.figures(0), first);
  const OpFigures last{.forward_s = 0.3 / 3, .backward_input_s = 0.3 * 2 / 3, .saved_bytes = 1};
  EXPECT_EQ(*graph.figures(2), last);
  EXPECT_EQ(graph.figures(1)->forward_s, 0.25);
}

TEST(Piper, ADegreeWithoutVariantsIsOneThatANodeDoesNotHave) {
  const std::string text = samples::with(samples::piper().text, R"("TMPCs": {"1": [)", R"("TMPCs": {"4": [], "1": [)");
  EXPECT_EQ(model_of(read_piper(text, "empty.json")).ops[2].size(), 1U);
}

}  // namespace
}  // namespace millrace::import
