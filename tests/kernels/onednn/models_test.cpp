// Layers of the branching networks, and BERT, on the oneDNN device against the reference in double precision.
#include <gmock/gmock.h>

#include "kernels/onednn/onednn_device.h"
#include "kernels/reference/reference_device.h"
#include "models/registry.h"
#include "tests/kernels/onednn/relative_error.h"
#include "tests/kernels/onednn/stage_expectations.h"
#include "tests/kernels/onednn/stage_run.h"

namespace millrace::kernels::testing {
namespace {

/// The operators of one layer, which are neighbours.
StageGraph layer_stage(const Graph& graph, std::string_view layer) {
  OpId first = 0;
  while (graph.op(first).layer != layer) ++first;
  OpId last = first;
  while (last < graph.size() && graph.op(last).layer == layer) ++last;
  return part_of(graph, first, last);
}

void expect_as_reference(const StageGraph& stage) {
  const StageRunOptions options{.rows = 3, .valid_rows = 2, .slots = 2};
  expect_stage_as_reference(stage, options);
}

struct Layers {
  const char* model;
  const char* image;
  std::vector<const char*> layers;
};

class BranchingModel : public ::testing::TestWithParam<Layers> {};

TEST_P(BranchingModel, LayersAreAsTheReferences) {
  const Graph graph = models::make(GetParam().model, {{"image", GetParam().image}});
  for (const char* layer : GetParam().layers) {
    SCOPED_TRACE(layer);
    expect_as_reference(layer_stage(graph, layer));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, BranchingModel,
    ::testing::Values(Layers{"alexnet", "63", {"features.0"}}, Layers{"googlenet", "32", {"conv1", "inception3a"}},
                      // High and wide kernels, strides, and both kinds of pools.
                      Layers{"inception_v3", "75", {"Mixed_6a", "Mixed_6b"}},
                      Layers{"densenet121", "32", {"features.denseblock1.denselayer3", "features.transition1"}}),
    [](const auto& row) { return std::string(row.param.model); });

TEST(Bert, IsAsTheReference) {
  for (const char* head : {"masked_lm", "classification"}) {
    SCOPED_TRACE(head);
    const Graph graph = models::make("bert", {{"layers", "2"},
                                              {"width", "32"},
                                              {"heads", "4"},
                                              {"sequence", "24"},
                                              {"vocabulary", "50"},
                                              {"dropout", "0.1"},
                                              {"head", head}});
    expect_as_reference(whole_stage(graph));
  }
}

}  // namespace
}  // namespace millrace::kernels::testing
