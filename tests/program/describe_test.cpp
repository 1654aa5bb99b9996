// Instructions in words.
#include "program/describe.h"

#include <gmock/gmock.h>

#include "tests/program/networks.h"

namespace millrace::test {
namespace {

TEST(Describe, NamesTensorMicroBatchAndPeer) {
  const Graph graph = chain(3);
  const Program program =
      make_program(graph, make_plan(graph, {{.replicas = {1, 2}, .micro_batches = 2, .ops_per_stage = {1, 3}}}), 8);
  EXPECT_EQ(describe(graph, program, 0, 0), "rank 0: forward of stage 0 of pipeline 0, micro-batch 0");
  EXPECT_EQ(describe(graph, program, 0, 2), "rank 0: send_activation of linear0.output, micro-batch 0, to rank 2");
  EXPECT_EQ(describe(graph, program, 2, 0), "rank 2: receive_activation of linear0.output, micro-batch 0, from rank 0");
  EXPECT_EQ(describe(graph, program, 2, 3), "rank 2: send_gradient of linear0.output, micro-batch 0, to rank 0");
  EXPECT_EQ(describe(graph, program, 2, 8),
            "rank 2: reduce_gradients of bucket 0 (linear2.weight and 3 more) over ranks 1, 2");
  EXPECT_EQ(describe(graph, program, 2, 9), "rank 2: reduce_norm");
  EXPECT_EQ(describe(graph, program, 2, 10), "rank 2: update_weights of bucket 0 (linear2.weight and 3 more)");
}

}  // namespace
}  // namespace millrace::test
