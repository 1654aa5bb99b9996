// Which warm-ups 1f1b accepts: exactly those that cannot deadlock.
#include <algorithm>

#include <gmock/gmock.h>

#include "base/errors.h"
#include "program/lowering.h"
#include "program/stage_dag.h"
#include "program/verifier.h"
#include "schedules/registry.h"
#include "tests/program/networks.h"

namespace millrace::test {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// 1F1B with any warm-ups, checked by nobody.
ComputeOrder unchecked_order(const Plan& plan) {
  ComputeOrder order(plan);
  const Pipeline& pipeline = plan.pipelines[0];
  for (int s = 0; s < static_cast<int>(pipeline.stages.size()); ++s) {
    const std::int64_t m = pipeline.micro_batches;
    const std::int64_t w = std::min<std::int64_t>(pipeline.warmup[static_cast<std::size_t>(s)], m);
    ComputeOrder::Lane lane = order.lane({0, s});
    for (std::int64_t k = 0; k < w; ++k) lane.forward(k);
    for (std::int64_t k = w; k < m; ++k) lane.forward(k).backward(k - w);
    for (std::int64_t k = m - w; k < m; ++k) lane.backward(k);
  }
  return order;
}

void expect_accepted_iff_it_ends(const Graph& graph, PipelineShape shape, int most) {
  const std::size_t stages = shape.replicas.size();
  shape.warmup.assign(stages, 0);
  int accepted_count = 0;
  while (true) {
    const Plan plan = make_plan(graph, {shape});
    const StageDag dag = make_stage_dag(graph, plan);
    const bool ends = verify(graph, lower(graph, plan, unchecked_order(plan), shape.micro_batches)).empty();
    bool accepted = true;
    try {
      const ComputeOrder order = schedules::compute_order(plan, dag);
      EXPECT_EQ(order.ranks(), unchecked_order(plan).ranks());
    } catch (const InvalidInput&) {
      accepted = false;
    }
    EXPECT_EQ(accepted, ends) << testing::PrintToString(shape.warmup);
    accepted_count += accepted ? 1 : 0;
    std::size_t s = 0;
    while (s < stages && shape.warmup[s] == most) shape.warmup[s++] = 0;
    if (s == stages) break;
    ++shape.warmup[s];
  }
  EXPECT_GT(accepted_count, 10);
}

TEST(Warmup, IsAcceptedExactlyWhereThePipelineEnds) {
  expect_accepted_iff_it_ends(chain(2), {.replicas = {1, 1, 1}, .micro_batches = 4}, 5);
  expect_accepted_iff_it_ends(skips(1), {.replicas = {1, 1, 1}, .micro_batches = 3, .ops_per_stage = {1, 1, 2}}, 4);
  expect_accepted_iff_it_ends(diamond(), {.replicas = {1, 1, 1, 1}, .micro_batches = 3, .ops_per_stage = {1, 1, 1, 2}},
                              3);
}

TEST(Warmup, RefusalsNameTheRule) {
  const Graph graph = chain(2);
  const auto order = [&](std::vector<int> warmup, const std::string& schedule) {
    const Plan plan =
        make_plan(graph, {{.replicas = {1, 1, 1}, .micro_batches = 4, .warmup = std::move(warmup)}}, schedule);
    return schedules::compute_order(plan, make_stage_dag(graph, plan));
  };
  EXPECT_THAT(
      [&] {
        order({1, 2, 0}, "1f1b");
      },
      ThrowsMessage<InvalidInput>(HasSubstr("stage 0 has warm-up 1, stage 1, which it feeds, has 2: the pipeline "
                                            "would deadlock")));
  EXPECT_THAT([&] { order({1, 0}, "1f1b"); }, ThrowsMessage<InvalidInput>(HasSubstr("gives 2 warm-ups for 3 stages")));
  EXPECT_THAT([&] { order({1, 0, -1}, "1f1b"); }, ThrowsMessage<InvalidInput>(HasSubstr("allowed: 0 or more")));
  EXPECT_THAT([&] { order({2, 1, 0}, "gpipe"); }, ThrowsMessage<InvalidInput>(HasSubstr("'warmup' must be empty")));
}

}  // namespace
}  // namespace millrace::test
