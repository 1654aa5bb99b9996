// PipeDream profiles: times, lists of activations, order and the profiled batch, against values by hand.
#include "import/pipedream.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "import/import.h"
#include "tests/import/samples.h"

namespace millrace::import {
namespace {

using testing::ElementsAre;

Graph profiled_sample() { return read_pipedream(samples::profile().text, samples::profile().file); }

const LayerProfile& profile_of(const Graph& graph) { return std::get<LayerProfile>(graph.carried()->extra); }

TEST(PipeDream, LayersComeInTopologicalOrder) {
  const Graph graph = profiled_sample();
  ASSERT_EQ(graph.size(), 3);
  EXPECT_EQ(graph.op(0).name, "node1");
  EXPECT_EQ(graph.op(1).name, "node2");
  EXPECT_EQ(graph.op(2).name, "node4");
  EXPECT_THAT(graph.op(2).inputs, ElementsAre(graph.op(1).outputs[0]));
  EXPECT_THAT(profile_of(graph).is_input, ElementsAre(true, false, false));
}

TEST(PipeDream, FiguresAreTheFilesToTheDigit) {
  const Graph graph = profiled_sample();
  const OpFigures lstm{.forward_s = 3.190 / 1000,
                       .backward_input_s = 5.348 / 1000 / 2,
                       .backward_weight_s = 5.348 / 1000 / 2,
                       .parameter_bytes = 364,
                       .output_bytes = 124,
                       .saved_bytes = 124};
  EXPECT_EQ(*graph.figures(2), lstm);
  EXPECT_EQ(graph.figures(2)->backward_input_s + graph.figures(2)->backward_weight_s, 5.348 / 1000);
  const OpFigures dropout{.forward_s = 0.0005, .backward_input_s = 0.00025, .output_bytes = 64, .saved_bytes = 64};
  EXPECT_EQ(*graph.figures(1), dropout);
}

TEST(PipeDream, TheProfiledBatchIsGivenOrNamedOrOne) {
  const std::string& text = samples::profile().text;
  EXPECT_EQ(profile_of(profiled_sample()).profile_batch, 16);
  EXPECT_EQ(profile_of(read_pipedream(text, "dir-pbs-3/graph.txt")).profile_batch, 1);
  EXPECT_EQ(profile_of(read_pipedream(text, "x-pbs-64-simplified.txt")).profile_batch, 64);
  EXPECT_EQ(profile_of(read_pipedream(text, "x-pbs-64.txt", 5)).profile_batch, 5);
  const Imported imported = load_text(text, "x-pbs-64.txt", {.profile_batch = 6});
  EXPECT_EQ(imported.batch, 1);
  EXPECT_EQ(profile_of(imported.graph).profile_batch, 6);
}

// REPORTS P13: 2^40 paths through 40 joins.
TEST(PipeDream, JoinsDoNotMultiplyPaths) {
  std::string nodes, edges;
  for (int i = 1; i <= 81; ++i) {
    nodes += fmt::format(
        "node{} -- Op() -- forward_compute_time=1.000, backward_compute_time=2.000, activation_size=8.000, "
        "parameter_size=4.000\n",
        i);
  }
  for (int i = 1; i < 81; i += 2) {
    edges += fmt::format("\tnode{0} -- node{1}\n\tnode{0} -- node{2}\n\tnode{1} -- node{2}\n", i, i + 1, i + 2);
  }
  const Graph graph = read_pipedream(nodes + edges, "graph.txt");
  EXPECT_EQ(graph.size(), 81);
  EXPECT_EQ(graph.op(80).name, "node81");
  EXPECT_EQ(graph.op(80).inputs.size(), 2U);
}

TEST(PipeDream, SplitProfilesAndForeignLineEndsAreRead) {
  std::string text = samples::profile().text;
  text = samples::with(text, "parameter_size=364.000\n", "parameter_size=364.000 -- stage_id=2\r\n\r\n");
  EXPECT_EQ(read_pipedream(text, samples::profile().file).digest(), profiled_sample().digest());
}

}  // namespace
}  // namespace millrace::import
