// The one-rank twin of a plan: micro-batches of all pipelines, and of the replicas where batch norm looks at rows.
#include "plan/one_rank.h"

#include <gtest/gtest.h>

#include "base/errors.h"
#include "graph/graph_builder.h"

namespace millrace::plan {
namespace {

Graph chain(bool batch_norm) {
  GraphBuilder builder("chain");
  TensorId x = builder.input("input", {{4}});
  x = builder.add({"fc1", "linear", {x}, {{"out_features", std::int64_t{4}}}});
  x = batch_norm ? builder.add({"bn", "batch_norm", {x}}) : builder.add({"relu", "relu", {x}});
  builder.add({"fc2", "linear", {x}, {{"out_features", std::int64_t{4}}}});
  return builder.build();
}

Plan two_pipelines(std::vector<double> shares) {
  Plan plan;
  int device = 0;
  for (int p = 0; p < 2; ++p) {
    Pipeline pipeline;
    pipeline.share = 0.5;
    pipeline.micro_batches = 3;
    pipeline.stages.resize(2);
    pipeline.stages[0].ops = {0, 1};
    pipeline.stages[0].shares = shares;
    pipeline.stages[1].ops = {2};
    pipeline.stages[1].shares = {1.0};
    for (Stage& stage : pipeline.stages) {
      for (std::size_t r = 0; r < stage.shares.size(); ++r) stage.devices.push_back(device++);
    }
    plan.pipelines.push_back(pipeline);
  }
  return plan;
}

TEST(OneRankPlan, CountsTheMicroBatchesOfAllPipelines) {
  const Plan single = one_rank_plan(two_pipelines({1.0}), chain(false), 25);
  ASSERT_EQ(single.pipelines.size(), 1U);
  EXPECT_EQ(single.pipelines[0].micro_batches, 6);
  EXPECT_EQ(single.pipelines[0].stages[0].ops, (std::vector<OpId>{0, 1, 2}));
}

TEST(OneRankPlan, BatchNormSeesTheRowsOfAReplica) {
  EXPECT_EQ(one_rank_plan(two_pipelines({0.5, 0.5}), chain(true), 24).pipelines[0].micro_batches, 12);
}

TEST(OneRankPlan, RefusesRowsThatOneRankCannotForm) {
  EXPECT_THROW(one_rank_plan(two_pipelines({0.5, 0.5}), chain(true), 26), InvalidInput);
  EXPECT_THROW(one_rank_plan(two_pipelines({0.75, 0.25}), chain(true), 24), InvalidInput);
}

}  // namespace
}  // namespace millrace::plan
