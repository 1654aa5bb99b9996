// The root of the tree depends on the leaves alone, not on the order in which they come.
#include "kernels/gradient_tree.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "base/random.h"

namespace millrace::kernels {
namespace {

float root_of(const std::vector<std::int64_t>& order, const std::vector<float>& leaves) {
  const auto batch = static_cast<std::int64_t>(leaves.size());
  GradientTree tree(1, Precision::fp32);
  tree.reserve(most_tree_nodes(order, batch));
  const std::int64_t reserved = tree.bytes();
  tree.begin(batch);
  for (const std::int64_t row : order) tree.add(row, &leaves[static_cast<std::size_t>(row)]);
  EXPECT_EQ(tree.bytes(), reserved) << "more nodes than reserved";
  const void* root = tree.find(tree_root(batch));
  EXPECT_NE(root, nullptr);
  return root ? *static_cast<const float*>(root) : 0;
}

TEST(GradientTree, ThreeRowsAreTheFirstTwoAndTheThird) {
  const std::vector<float> leaves{1e8F, -1e8F, 1.0F};
  EXPECT_EQ(root_of({0, 1, 2}, leaves), 1.0F);
  EXPECT_EQ(root_of({2, 1, 0}, leaves), 1.0F);  // in this order a running sum would be 0
}

TEST(GradientTree, EveryOrderGivesTheSameBits) {
  const Random random(3, "leaves");
  for (const std::size_t batch : {1U, 2U, 5U, 22U, 64U, 100U}) {
    std::vector<float> leaves(batch);
    for (std::size_t i = 0; i < batch; ++i) leaves[i] = static_cast<float>(random.normal(i) * 1e3);
    std::vector<std::int64_t> order(batch);
    std::iota(order.begin(), order.end(), 0);
    const float expected = root_of(order, leaves);
    for (std::uint64_t turn = 0; turn < 5; ++turn) {
      for (std::size_t i = batch; i > 1; --i) std::swap(order[i - 1], order[random.below(i, 1000 * turn + i)]);
      EXPECT_EQ(root_of(order, leaves), expected);
    }
  }
}

TEST(GradientTree, RowsInOrderHoldAFewNodes) {
  std::vector<std::int64_t> order(128);
  std::iota(order.begin(), order.end(), 0);
  EXPECT_EQ(most_tree_nodes(order, 128), 8U);
}

}  // namespace
}  // namespace millrace::kernels
