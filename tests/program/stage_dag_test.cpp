// Depths follow tensors, not stage numbers.
#include "program/stage_dag.h"

#include <gmock/gmock.h>

#include "base/errors.h"
#include "tests/program/networks.h"

namespace millrace::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

TEST(StageDag, CountsDepthFromTheEnd) {
  const Graph graph = chain(3);
  EXPECT_THAT(make_stage_dag(graph, make_plan(graph, {{.replicas = {1, 1, 1, 1}}})).depth_from_end,
              ElementsAre(3, 2, 1, 0));
}

TEST(StageDag, StagesWithoutAnEdgeAreParallel) {
  const Graph graph = diamond();
  const StageDag dag =
      make_stage_dag(graph, make_plan(graph, {{.replicas = {1, 1, 1, 1}, .ops_per_stage = {1, 1, 1, 2}}}));
  EXPECT_THAT(dag.successors, ElementsAre(ElementsAre(1, 2), ElementsAre(3), ElementsAre(3), IsEmpty()));
  EXPECT_THAT(dag.predecessors, ElementsAre(IsEmpty(), ElementsAre(0), ElementsAre(0), ElementsAre(1, 2)));
  EXPECT_THAT(dag.depth_from_end, ElementsAre(2, 1, 1, 0));
}

TEST(StageDag, KeepsPipelinesApart) {
  const Graph graph = chain(3);
  const StageDag dag = make_stage_dag(
      graph, make_plan(graph, {{.replicas = {1, 1}, .share = 0.5}, {.replicas = {1, 1, 1}, .share = 0.5}}));
  EXPECT_THAT(dag.depth_from_end, ElementsAre(1, 0, 2, 1, 0));
  EXPECT_THAT(dag.successors[1], IsEmpty());
}

TEST(StageDag, RefusesBrokenCoversAndCircles) {
  const Graph graph = chain(2);
  Plan plan = make_plan(graph, {{.replicas = {1, 1}}});
  plan.pipelines[0].stages[0].ops = {0, 2};
  plan.pipelines[0].stages[1].ops = {1};
  EXPECT_THAT([&] { make_stage_dag(graph, plan); }, ThrowsMessage<InvalidInput>(HasSubstr("in a circle")));
  plan.pipelines[0].stages[0].ops = {0};
  EXPECT_THAT([&] { make_stage_dag(graph, plan); },
              ThrowsMessage<InvalidInput>(HasSubstr("operator loss is in no stage of pipeline 0")));
  plan.pipelines[0].stages[0].ops = {0, 1, 2};
  EXPECT_THAT([&] { make_stage_dag(graph, plan); }, ThrowsMessage<InvalidInput>(HasSubstr("in stages 0 and 1")));
}

}  // namespace
}  // namespace millrace::test
