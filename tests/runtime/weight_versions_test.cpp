// A stash is copied when an update is about to change what it names, and one copy serves all stashes of equal weights.
#include "runtime/weight_versions.h"

#include <gtest/gtest.h>

#include "tests/mpi/networks.h"
#include "tests/mpi/training_run.h"
#include "tests/runtime/programs.h"

namespace millrace::runtime {
namespace {

using testing::training_program;

VersionNeeds needs(const std::string& schedule, int stages, std::int64_t micro_batches, int stage) {
  const Graph graph = millrace::testing::small_network("mlp");
  const Plan plan = millrace::testing::make_plan(graph, {1, stages, micro_batches, schedule});
  return WeightVersions::needs(training_program(graph, plan, 2 * micro_batches), stage, stage);
}

TEST(WeightVersions, PipedreamKeepsAsManyVersionsAsStagesFollow) {  // METHODS 2: p - s, the newest among them
  for (const std::int64_t m : {1, 2, 5}) {
    for (int stage = 0; stage < 4; ++stage) {
      EXPECT_EQ(needs("pipedream", 4, m, stage).copies, 3 - stage) << "m " << m << " stage " << stage;
      EXPECT_FALSE(needs("pipedream", 4, m, stage).first);
    }
  }
}

TEST(WeightVersions, TwoVersionsAreEnoughForTwoBufferedWeights) {
  for (int stage = 0; stage < 4; ++stage) EXPECT_EQ(needs("pipedream-2bw", 4, 6, stage).copies, 1);
}

TEST(WeightVersions, SynchronousSchedulesKeepNone) { EXPECT_EQ(needs("1f1b", 4, 6, 0).copies, 0); }

class Stashes : public ::testing::Test {
 protected:
  // The values that a computation reads now, as the first element of the first parameter.
  float read() {
    versions_.select();
    return *static_cast<const float*>(parameters_.value(parameters_.order()[0], parameters_.reading()));
  }
  void update(float value) {
    versions_.before_update();
    *static_cast<float*>(parameters_.value_range(0)) = value;
  }

  Graph graph_ = millrace::testing::small_network("mlp");
  StageGraph stage_ = make_stage_graph(graph_, OpList::range(0, static_cast<OpId>(graph_.size())));
  kernels::StageParameters parameters_ = [this] {
    kernels::StageParameters parameters(stage_, stage_.parameters, kernels::Precision::fp32);
    parameters.reserve_copies(2);
    return parameters;
  }();
  WeightVersions versions_{parameters_, {2, true}};
};

TEST_F(Stashes, ALoadedStashIsReadByTheNextComputationAlone) {
  versions_.begin();
  update(1);
  versions_.stash(0, 1);
  versions_.stash(0, 2);
  update(2);
  EXPECT_EQ(read(), 2);
  versions_.load(0, 2);
  EXPECT_EQ(read(), 1);
  versions_.used();
  EXPECT_EQ(read(), 2);
}

TEST_F(Stashes, WhatTheFirstIterationHasNotStashedIsTheBeginning) {
  update(5);
  versions_.begin();
  update(6);
  versions_.load(0, 0);
  EXPECT_EQ(read(), 5);
  versions_.used();
  versions_.first_iteration_is_over();
  EXPECT_EQ(read(), 6);
}

TEST_F(Stashes, AStashOutlivesAnUpdateBetweenItsLoadAndItsUse) {
  versions_.begin();
  update(3);
  versions_.stash(0, 0);
  versions_.load(0, 0);
  versions_.drop(0, 0);
  update(4);
  EXPECT_EQ(read(), 3);
}

}  // namespace
}  // namespace millrace::runtime
