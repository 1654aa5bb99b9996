// Where images are kept in blocks: between convolutions, never at borders or beside readers that know rows only.
#include "kernels/onednn/layouts.h"

#include <gmock/gmock.h>

#include "models/families.h"
#include "tests/kernels/onednn/stage_run.h"

namespace millrace::kernels::onednn {
namespace {

using testing::part_of;
using testing::whole_stage;

Graph resnet() {
  models::ResnetOptions options;
  options.blocks = {1, 1};
  options.width = 16;
  options.small_stem = true;
  options.image = 8;
  return models::make_resnet("resnet", options);
}

TEST(Layouts, ImagesBetweenConvolutionsAreBlocked) {
  const Graph graph = resnet();
  const Engine engine;
  const Layouts layouts(whole_stage(graph), 2, false, engine);
  for (const Operator& op : graph.operators()) {
    const TensorId output = op.outputs[0];
    const bool image = graph.tensor(output).shape.dims.size() == 3;
    EXPECT_EQ(layouts.block(output) > 0, image) << op.name;
  }
  EXPECT_EQ(layouts.block(graph.inputs()[0]), 0);
}

TEST(Layouts, BordersArePlain) {
  const Graph graph = resnet();
  const Engine engine;
  for (OpId cut = 1; cut < graph.size(); ++cut) {
    for (const StageGraph& stage : {part_of(graph, 0, cut), part_of(graph, cut, static_cast<OpId>(graph.size()))}) {
      const Layouts layouts(stage, 2, false, engine);
      for (const TensorId tensor : stage.inputs) EXPECT_EQ(layouts.block(tensor), 0);
      for (const TensorId tensor : stage.outputs) EXPECT_EQ(layouts.block(tensor), 0);
    }
  }
}

TEST(Layouts, ReadersThatKnowRowsOnlyGetRows) {
  const Graph graph = models::make_lenet(10, 28, 1);
  const Engine engine;
  const Layouts layouts(whole_stage(graph), 2, false, engine);
  for (const Operator& op : graph.operators()) {
    if (op.schema->name != "flatten") continue;
    EXPECT_EQ(layouts.block(op.inputs[0]), 0) << op.name;
  }
}

}  // namespace
}  // namespace millrace::kernels::onednn
