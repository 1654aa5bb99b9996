// Tags stay below any limit and still tell messages apart.
#include "program/tags.h"

#include <gmock/gmock.h>

#include "base/errors.h"
#include "program/lowering.h"
#include "program/stage_dag.h"
#include "program/verifier.h"
#include "schedules/registry.h"
#include "tests/program/networks.h"

namespace millrace::test {
namespace {

Program with_limit(const Graph& graph, const Plan& plan, std::int32_t tag_limit) {
  const ComputeOrder order = schedules::compute_order(plan, make_stage_dag(graph, plan));
  return lower(graph, plan, order, 12, {.tag_limit = tag_limit});
}

TEST(Tags, AreDistinctWhereTheLimitAllows) {
  const Graph graph = skips(3);
  const Program program = with_limit(graph, make_plan(graph, {{.replicas = {1, 1}, .micro_batches = 6}}), 32767);
  std::vector<std::int32_t> tags;
  for (const Transfer& t : program.transfers) {
    if (t.sender == 0) tags.push_back(t.tag);
  }
  std::sort(tags.begin(), tags.end());
  for (std::size_t i = 0; i < tags.size(); ++i) EXPECT_EQ(tags[i], static_cast<std::int32_t>(i));
}

TEST(Tags, AreReusedByLaterMicroBatchesOfAnEdge) {
  const Graph graph = skips(3);  // two tensors cross: first.output and an add's
  const Plan plan = make_plan(graph, {{.replicas = {1, 2, 1}, .micro_batches = 6}});
  for (const std::int32_t limit : {1, 2, 3, 5, 8}) {
    const Program program = with_limit(graph, plan, limit);
    std::int32_t highest = 0;
    for (const Transfer& t : program.transfers) highest = std::max(highest, t.tag);
    EXPECT_LE(highest, limit);
    EXPECT_THAT(verify(graph, program, limit), testing::IsEmpty());
  }
}

TEST(Tags, RefusesMoreEdgesThanTags) {
  const Graph graph = skips(3);
  const Plan plan = make_plan(graph, {{.replicas = {1, 1}, .micro_batches = 6}});
  EXPECT_THAT([&] { with_limit(graph, plan, 0); },
              testing::ThrowsMessage<InvalidInput>(
                  testing::HasSubstr("rank 0 sends 2 different tensors to rank 1, but the transport has only 1 tags")));
}

}  // namespace
}  // namespace millrace::test
