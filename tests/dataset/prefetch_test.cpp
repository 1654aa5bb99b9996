// Prefetching changes when rows are read, never which; and ends in good order whatever happens.
#include "dataset/prefetch.h"

#include <atomic>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.h"
#include "dataset/order.h"
#include "dataset/synthetic_source.h"

namespace millrace::dataset {
namespace {

const SyntheticSource& source() {
  static const SyntheticSource instance(3, {InputKind::real, {4}, 1, 10});
  return instance;
}

TEST(Prefetcher, HandsOutTheRowsAskedForInTurn) {
  SampleOrder order(1, 40, 8, Tail::uneven);
  Batch batch;
  Prefetcher prefetcher(source(), Split::train, [&](std::int64_t position, RowRequest& request) {
    if (position == 12) return false;
    order.batch(position, batch);
    request.input_ids.assign(batch.ids.begin(), batch.ids.begin() + 3);
    request.label_ids.assign(batch.ids.begin() + 3, batch.ids.end());
    return true;
  });
  SampleOrder again(1, 40, 8, Tail::uneven);
  std::set<const float*> buffers;
  for (std::int64_t position = 0; position < 12; ++position) {
    const Rows* rows = prefetcher.next();
    ASSERT_NE(rows, nullptr);
    EXPECT_EQ(rows->position, position);
    const std::vector<std::int64_t> ids = again.batch(position).ids;
    std::vector<float> inputs(12);
    std::vector<std::int32_t> labels(5);
    source().read_inputs(Split::train, std::span(ids).first(3), inputs.data());
    source().read_labels(Split::train, std::span(ids).subspan(3), labels.data());
    EXPECT_EQ(rows->real_inputs, inputs);
    EXPECT_TRUE(rows->index_inputs.empty());
    EXPECT_EQ(rows->labels, labels);
    buffers.insert(rows->real_inputs.data());
  }
  EXPECT_EQ(prefetcher.next(), nullptr);
  EXPECT_EQ(prefetcher.next(), nullptr);
  EXPECT_LE(buffers.size(), 2U);  // depth + 1 buffers circulate, and one step read ahead is enough
}

TEST(Prefetcher, ReadsNoFurtherAheadThanItsDepth) {
  std::atomic<std::int64_t> asked = 0;
  Prefetcher prefetcher(source(), Split::train,
                        [&](std::int64_t position, RowRequest& request) {
                          asked = position + 1;
                          request.input_ids = {position};
                          return true;
                        },
                        2);
  for (std::int64_t taken = 1; taken <= 20; ++taken) {
    ASSERT_NE(prefetcher.next(), nullptr);
    EXPECT_LE(asked, taken + 2);
  }
}

TEST(Prefetcher, ThrowsTheReadersErrorInItsTurn) {
  Prefetcher prefetcher(source(), Split::train, [](std::int64_t position, RowRequest& request) {
    if (position == 2) throw InvalidInput("row 2 cannot be read");
    request.label_ids = {position};
    return true;
  });
  EXPECT_NE(prefetcher.next(), nullptr);
  EXPECT_NE(prefetcher.next(), nullptr);
  EXPECT_THROW(prefetcher.next(), InvalidInput);
  EXPECT_THROW(prefetcher.next(), InvalidInput);
}

TEST(Prefetcher, EndsWithRowsThatNobodyTook) {
  for (int taken = 0; taken < 4; ++taken) {
    Prefetcher prefetcher(source(), Split::train, [](std::int64_t position, RowRequest& request) {
      request.input_ids = {position};
      return true;
    });
    for (int i = 0; i < taken; ++i) prefetcher.next();
  }
}

TEST(Prefetcher, ARankOfTheMiddleReadsNothing) {
  Prefetcher prefetcher(source(), Split::train, [](std::int64_t, RowRequest&) { return true; });
  const Rows* rows = prefetcher.next();
  ASSERT_NE(rows, nullptr);
  EXPECT_TRUE(rows->real_inputs.empty());
  EXPECT_TRUE(rows->labels.empty());
}

}  // namespace
}  // namespace millrace::dataset
