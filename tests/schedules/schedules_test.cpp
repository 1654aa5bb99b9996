// The exact orders of METHODS 2.
#include <gmock/gmock.h>

#include "program/stage_dag.h"
#include "schedules/registry.h"
#include "tests/program/networks.h"

namespace millrace::test {
namespace {

using testing::ElementsAre;

// "F0 F1 B0 …" of each rank.
std::vector<std::string> orders(const Graph& graph, const Plan& plan) {
  std::vector<std::string> all;
  const ComputeOrder order = schedules::compute_order(plan, make_stage_dag(graph, plan));
  for (const auto& rank : order.ranks()) {
    std::string& text = all.emplace_back();
    for (const ComputeAction& action : rank) {
      if (!text.empty()) text += ' ';
      text += action.kind == ComputeKind::forward ? 'F' : 'B';
      text += std::to_string(action.micro_batch);
    }
  }
  return all;
}

std::vector<std::string> chain_orders(int stages, int micro_batches, const std::string& schedule) {
  const Graph graph = chain(5);
  const PipelineShape shape{.replicas = std::vector<int>(static_cast<std::size_t>(stages), 1),
                            .micro_batches = micro_batches};
  return orders(graph, make_plan(graph, {shape}, schedule));
}

TEST(GPipe, RunsAllForwardsFirst) {
  EXPECT_THAT(chain_orders(2, 3, "gpipe"), ElementsAre("F0 F1 F2 B0 B1 B2", "F0 F1 F2 B0 B1 B2"));
}

TEST(OneFOneB, WarmsUpByDepth) {
  EXPECT_THAT(chain_orders(3, 4, "1f1b"),
              ElementsAre("F0 F1 F2 B0 F3 B1 B2 B3", "F0 F1 B0 F2 B1 F3 B2 B3", "F0 B0 F1 B1 F2 B2 F3 B3"));
}

TEST(OneFOneB, TakesFewMicroBatches) {
  EXPECT_THAT(chain_orders(4, 1, "1f1b"), testing::Each("F0 B0"));
  EXPECT_THAT(chain_orders(4, 2, "1f1b"), ElementsAre("F0 F1 B0 B1", "F0 F1 B0 B1", "F0 F1 B0 B1", "F0 B0 F1 B1"));
  EXPECT_THAT(chain_orders(1, 2, "1f1b"), ElementsAre("F0 B0 F1 B1"));
}

TEST(OneFOneB, FollowsTheStageDag) {
  const Graph graph = diamond();
  const Plan plan = make_plan(graph, {{.replicas = {1, 1, 1, 1}, .micro_batches = 3, .ops_per_stage = {1, 1, 1, 2}}});
  EXPECT_THAT(orders(graph, plan),
              ElementsAre("F0 F1 F2 B0 B1 B2", "F0 F1 B0 F2 B1 B2", "F0 F1 B0 F2 B1 B2", "F0 B0 F1 B1 F2 B2"));
}

TEST(Schedules, ReplicasActAlikeAndPipelinesApart) {
  const Graph graph = chain(3);
  const Plan plan = make_plan(graph, {{.replicas = {1, 2}, .micro_batches = 2, .share = 0.5},
                                      {.replicas = {1}, .micro_batches = 1, .share = 0.5}});
  EXPECT_THAT(orders(graph, plan), ElementsAre("F0 F1 B0 B1", "F0 B0 F1 B1", "F0 B0 F1 B1", "F0 B0"));
}

}  // namespace
}  // namespace millrace::test
