// One permutation an epoch, the same for whoever asks; tails as they were asked for (REPORTS D02, D04, D05, K05).
#include "dataset/order.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.h"
#include "base/random.h"
#include "tests/storage/expect_error.h"

namespace millrace::dataset {
namespace {

using ::testing::ElementsAre;
using Ids = std::vector<std::int64_t>;

/// The ids that count, of the steps of one epoch in turn.
Ids epoch_ids(SampleOrder& order, std::int64_t epoch) {
  Ids ids;
  for (std::int64_t step = 0; step < order.steps_per_epoch(); ++step) {
    const Batch batch = order.batch(epoch * order.steps_per_epoch() + step);
    EXPECT_EQ(batch.epoch, epoch);
    ids.insert(ids.end(), batch.ids.begin(), batch.ids.begin() + batch.valid);
  }
  return ids;
}

TEST(SampleOrder, EachEpochIsADisjointCoverInANewOrder) {
  for (const std::int64_t samples : {1, 5, 23, 100}) {
    SampleOrder order(1, samples, 4, Tail::uneven);
    const Ids first = epoch_ids(order, 0), second = epoch_ids(order, 1);
    for (Ids ids : {first, second}) {
      std::sort(ids.begin(), ids.end());
      for (std::size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(ids[i], static_cast<std::int64_t>(i));
      EXPECT_EQ(ids.size(), static_cast<std::size_t>(samples));
    }
    if (samples > 4) {
      EXPECT_NE(first, second);
    }
    SampleOrder other_seed(2, samples, 4, Tail::uneven);
    if (samples > 4) {
      EXPECT_NE(epoch_ids(other_seed, 0), first);
    }
  }
}

TEST(SampleOrder, IsFisherYatesOfTheSeedAndTheEpoch) {
  Ids expected{0, 1, 2, 3, 4, 5, 6};
  const Random random(9, "shuffle", 3);
  for (std::size_t i = 6; i > 0; --i) std::swap(expected[i], expected[random.below(i + 1, i)]);
  SampleOrder order(9, 7, 7, Tail::drop);
  EXPECT_EQ(order.batch(3).ids, expected);
}

TEST(SampleOrder, AnyStepComesOutAlikeFromAnyoneInAnyOrder) {
  SampleOrder forwards(1, 23, 5, Tail::pad), resumed(1, 23, 5, Tail::pad);
  std::vector<Ids> all;
  for (std::int64_t step = 0; step < 15; ++step) all.push_back(forwards.batch(step).ids);
  for (std::size_t step = 15; step-- > 0;) EXPECT_EQ(resumed.batch(static_cast<std::int64_t>(step)).ids, all[step]);
}

TEST(SampleOrder, TheSamplesOfAnEpochDoNotDependOnTheBatch) {
  SampleOrder whole(1, 100, 100, Tail::uneven), pieces(1, 100, 7, Tail::uneven);
  EXPECT_EQ(epoch_ids(whole, 1), epoch_ids(pieces, 1));
}

struct TailCase {
  std::int64_t samples;
  std::int64_t batch;
  Tail tail;
  std::int64_t steps;
  std::int64_t last_rows;
  std::int64_t last_valid;
  std::int64_t dropped;
};

class Tails : public ::testing::TestWithParam<TailCase> {};

TEST_P(Tails, RowsOfTheLastBatch) {
  const TailCase c = GetParam();
  SampleOrder order(1, c.samples, c.batch, c.tail);
  EXPECT_EQ(order.steps_per_epoch(), c.steps);
  EXPECT_EQ(order.dropped_per_epoch(), c.dropped);
  const Batch last = order.batch(2 * c.steps - 1);
  EXPECT_EQ(last.epoch, 1);
  EXPECT_EQ(static_cast<std::int64_t>(last.ids.size()), c.last_rows);
  EXPECT_EQ(last.valid, c.last_valid);
  EXPECT_EQ(order.valid_rows(2 * c.steps - 1), c.last_valid);
  const std::set<std::int64_t> real(last.ids.begin(), last.ids.begin() + last.valid);
  EXPECT_EQ(static_cast<std::int64_t>(real.size()), c.last_valid);
  for (std::size_t row = static_cast<std::size_t>(last.valid); row < last.ids.size(); ++row) {
    EXPECT_EQ(last.ids[row], last.ids[row % static_cast<std::size_t>(last.valid)]);  // padding repeats, at the end
  }
  EXPECT_EQ(static_cast<std::int64_t>(epoch_ids(order, 0).size()), c.samples - c.dropped);
}

INSTANTIATE_TEST_SUITE_P(Policies, Tails,
                         ::testing::Values(TailCase{5, 4, Tail::drop, 1, 4, 4, 1},      // D04: 4, 5 and padding, 5
                                           TailCase{5, 4, Tail::pad, 2, 4, 1, 0},
                                           TailCase{5, 4, Tail::uneven, 2, 1, 1, 0},
                                           TailCase{23, 8, Tail::drop, 2, 8, 8, 7},
                                           TailCase{23, 8, Tail::pad, 3, 8, 7, 0},
                                           TailCase{23, 8, Tail::uneven, 3, 7, 7, 0},
                                           TailCase{100, 25, Tail::drop, 4, 25, 25, 0},
                                           TailCase{100, 25, Tail::pad, 4, 25, 25, 0},
                                           TailCase{100, 25, Tail::uneven, 4, 25, 25, 0},
                                           TailCase{5, 12, Tail::pad, 1, 12, 5, 0},     // more rows than samples
                                           TailCase{5, 12, Tail::uneven, 1, 5, 5, 0}));

TEST(SampleOrder, InFileOrderForEvaluation) {
  SampleOrder order = SampleOrder::in_file_order(5, 2, Tail::uneven);
  EXPECT_THAT(order.batch(0).ids, ElementsAre(0, 1));
  EXPECT_THAT(order.batch(2).ids, ElementsAre(4));
  EXPECT_THAT(order.batch(3).ids, ElementsAre(0, 1));
}

TEST(SampleOrder, RefusesWhatLeavesNothing) {
  storage::expect_error<InvalidInput>([] { SampleOrder(1, 5, 6, Tail::drop); },
                                      {"batch of 6 samples is larger than the data (5 samples)", "pad or uneven"});
  EXPECT_THROW(SampleOrder(1, 0, 1, Tail::pad), InvalidInput);
  EXPECT_THROW(SampleOrder(1, 5, 0, Tail::pad), InvalidInput);
}

}  // namespace
}  // namespace millrace::dataset
