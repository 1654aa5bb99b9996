// Rows of pipelines, micro-batches and replicas, by INTERFACES 9.
#include "plan/rows.h"

#include <numeric>

#include <gmock/gmock.h>

namespace millrace {
namespace {

using testing::ElementsAre;

Plan two_pipelines(double share, std::int64_t micro_batches, std::vector<double> replica_shares) {
  Stage stage;
  stage.shares = std::move(replica_shares);
  Plan plan;
  plan.pipelines = {Pipeline{share, micro_batches, {}, {stage}}, Pipeline{1 - share, micro_batches, {}, {stage}}};
  return plan;
}

TEST(LargestRemainder, FloorsThenLargestRemaindersTiesToTheLowerIndex) {
  EXPECT_THAT(largest_remainder(10, std::vector{0.5, 0.5}), ElementsAre(5, 5));
  EXPECT_THAT(largest_remainder(7, std::vector{0.5, 0.5}), ElementsAre(4, 3));
  EXPECT_THAT(largest_remainder(10, std::vector{0.25, 0.4, 0.35}), ElementsAre(3, 4, 3));
  EXPECT_THAT(largest_remainder(1, std::vector{0.3, 0.3, 0.4}), ElementsAre(0, 0, 1));
  EXPECT_THAT(largest_remainder(0, std::vector{0.3, 0.7}), ElementsAre(0, 0));
}

TEST(LargestRemainder, RoundingErrorsOfSharesLoseNoRow) {
  EXPECT_THAT(largest_remainder(10, std::vector{0.1 + 0.2, 0.7}), ElementsAre(3, 7));
  EXPECT_THAT(largest_remainder(9, std::vector{1.0 / 3, 1.0 / 3, 1.0 / 3}), ElementsAre(3, 3, 3));
  EXPECT_THAT(largest_remainder(10, std::vector{0.333333, 0.333333, 0.333334}), ElementsAre(3, 3, 4));
}

TEST(Rows, TheFirstMicroBatchesAreLonger) {
  const Plan plan = two_pipelines(0.5, 3, {1.0});
  EXPECT_EQ(pipeline_rows(plan, 23, 0), (RowInterval{0, 12}));
  EXPECT_EQ(pipeline_rows(plan, 23, 1), (RowInterval{12, 23}));
  EXPECT_EQ(micro_batch_rows(plan, 23, 1, 0), (RowInterval{12, 16}));
  EXPECT_EQ(micro_batch_rows(plan, 23, 1, 1), (RowInterval{16, 20}));
  EXPECT_EQ(micro_batch_rows(plan, 23, 1, 2), (RowInterval{20, 23}));
}

TEST(Rows, ReplicasTileEachMicroBatchAndMayBeEmpty) {
  for (const std::int64_t batch : {1, 5, 16, 23}) {
    const Plan plan = two_pipelines(0.3, 2, {0.5, 0.2, 0.3});
    std::int64_t next = 0;
    for (int p = 0; p < 2; ++p) {
      for (std::int64_t m = 0; m < 2; ++m) {
        for (int r = 0; r < 3; ++r) {
          const RowInterval rows = replica_rows(plan, batch, {p, 0}, m, r);
          EXPECT_EQ(rows.begin, next);
          next = rows.end;
        }
      }
    }
    EXPECT_EQ(next, batch);
  }
}

TEST(Rows, Intersection) {
  EXPECT_EQ(intersect({0, 5}, {3, 9}), (RowInterval{3, 5}));
  EXPECT_TRUE(intersect({0, 3}, {3, 9}).empty());
  EXPECT_EQ(intersect({0, 2}, {5, 9}).size(), 0);
}

}  // namespace
}  // namespace millrace
