// Training steps allocate nothing of their own.
#include <gmock/gmock.h>

#include "kernels/onednn/onednn_device.h"
#include "models/families.h"
#include "tests/kernels/onednn/caller_allocations.h"
#include "tests/kernels/onednn/stage_run.h"

namespace millrace::kernels::testing {
namespace {

std::int64_t allocations_of_a_step(const Graph& graph, Precision precision = Precision::fp32) {
  const auto device = make_onednn_device();
  PreparedStage prepared(whole_stage(graph), *device, precision, {.rows = 3, .valid_rows = 3, .slots = 2});
  const auto step = [&] {
    prepared.forward(0);
    prepared.forward(1);
    prepared.backward(0);
    prepared.backward(1);
  };
  step();  // oneDNN's first calls of a thread
  const std::int64_t before = own_allocations();
  step();
  return own_allocations() - before;
}

TEST(OnednnAllocations, TheCounterCounts) {
  const std::int64_t before = own_allocations();
  const auto device = make_onednn_device();
  EXPECT_GT(own_allocations(), before);
}

TEST(OnednnAllocations, StepsOfNetworksMakeNone) {
  EXPECT_EQ(allocations_of_a_step(models::make_lenet(10, 28, 1)), 0);
  models::ResnetOptions resnet;
  resnet.blocks = {1};
  resnet.width = 16;
  resnet.image = 32;
  EXPECT_EQ(allocations_of_a_step(models::make_resnet("resnet", resnet)), 0);
  EXPECT_EQ(allocations_of_a_step(models::make_resnet("resnet", resnet), Precision::bf16), 0);
  models::GptOptions gpt;
  gpt.layers = 1;
  gpt.width = 16;
  gpt.heads = 2;
  gpt.sequence = 12;
  gpt.vocabulary = 20;
  EXPECT_EQ(allocations_of_a_step(models::make_gpt(gpt)), 0);
  EXPECT_EQ(allocations_of_a_step(models::make_gpt(gpt), Precision::bf16), 0);
}

}  // namespace
}  // namespace millrace::kernels::testing
