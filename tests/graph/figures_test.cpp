// Operators with explicit figures: their tensors, bytes and digest.
#include <gtest/gtest.h>

#include "base/errors.h"
#include "graph/footprint.h"
#include "graph/graph_builder.h"

namespace millrace {
namespace {

Graph two_operators(const OpFigures& second) {
  GraphBuilder builder("two");
  const TensorId a = builder.add_cost("a", {}, {.forward_s = 1, .output_bytes = 100, .saved_bytes = 300});
  builder.add_cost("b", {a}, second);
  return builder.build();
}

TEST(Figures, BecomeTensorsOfBytes) {
  const Graph graph = two_operators({.forward_s = 2, .parameter_bytes = 4001, .output_bytes = 0});
  EXPECT_EQ(output_bytes_per_sample(graph, 0, 4), Bytes(100));
  EXPECT_EQ(output_bytes_per_sample(graph, 1, 4), Bytes(0));
  const std::vector<OpId> both{0, 1};
  EXPECT_EQ(parameter_bytes(graph, both, 8), Bytes(4001));
  EXPECT_EQ(saved_bytes_per_sample(graph, both, 4), Bytes(300));
  EXPECT_EQ(graph.parameter_count(), 1001);
  EXPECT_FALSE(graph.trainable());
  ASSERT_NE(graph.figures(1), nullptr);
  EXPECT_EQ(graph.figures(1)->forward_s, 2);
}

TEST(Figures, AreOfTheDigest) {
  EXPECT_EQ(two_operators({.forward_s = 2}).digest(), two_operators({.forward_s = 2}).digest());
  EXPECT_NE(two_operators({.forward_s = 2}).digest(), two_operators({.forward_s = 3}).digest());
  EXPECT_NE(two_operators({.saved_bytes = 2}).digest(), two_operators({.saved_bytes = 3}).digest());
}

TEST(Figures, BelowZeroAreRefused) {
  GraphBuilder builder("bad");
  EXPECT_THROW(builder.add_cost("a", {}, {.forward_s = -1}), InvalidInput);
  EXPECT_THROW(builder.add_cost("b", {}, {.output_bytes = -1}), InvalidInput);
}

TEST(Figures, InputsAreDataThatIsThere) {
  GraphBuilder builder("bad");
  builder.add_cost("a", {}, {.parameter_bytes = 4});
  for (const TensorId input : {-1, 0, 2}) {  // tensor 0 is the weight of a, tensor 1 its output
    EXPECT_THROW(builder.add_cost("b", {input}, {}), InvalidInput) << input;
  }
  builder.add_cost("b", {1}, {});
  EXPECT_EQ(builder.build().size(), 2);
}

}  // namespace
}  // namespace millrace
