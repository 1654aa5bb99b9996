// Cuts by ratios, and what fits.
#include <gtest/gtest.h>

#include "shard/intervals.h"

namespace millrace::shard {
namespace {

using Borders = std::vector<std::int64_t>;

TEST(CutUnits, ByLargestRemainder) {
  EXPECT_EQ(cut_units(11, 2, {}), (Borders{0, 6, 11}));
  EXPECT_EQ(cut_units(11, 4, {}), (Borders{0, 3, 6, 9, 11}));
  EXPECT_EQ(cut_units(3, 2, {}), (Borders{0, 2, 3}));
  EXPECT_EQ(cut_units(8, 2, {3, 1}), (Borders{0, 6, 8}));
  EXPECT_EQ(cut_units(10, 3, {1, 1, 1}), cut_units(10, 3, {}));
}

TEST(CutUnits, EveryPartGetsOneWhereThereAreEnough) {
  EXPECT_EQ(cut_units(4, 3, {100, 1, 1}), (Borders{0, 2, 3, 4}));
  EXPECT_EQ(cut_units(2, 3, {}), (Borders{0, 1, 2, 2}));
}

TEST(BoxOf, AxesCutOneDimensionInTheirOrder) {
  const std::vector<std::int64_t> extents{12, 6}, units{4, 6};
  const TensorView view{extents, units, 4};
  const Mesh mesh({{"x", 2}, {"y", 2}});
  EXPECT_EQ(box_of(view, {split(0), split(0)}, mesh, 1), (Box{{3, 6}, {0, 6}}));
  EXPECT_EQ(box_of(view, {split(0), split(0)}, mesh, 2), (Box{{6, 9}, {0, 6}}));
  EXPECT_EQ(box_of(view, {kReplicated, split(1)}, mesh, 2), (Box{{0, 12}, {0, 3}}));
}

TEST(Fits, NeedsAUnitForEachDevice) {
  const std::vector<std::int64_t> extents{12, 1}, units{3, 1};
  const TensorView view{extents, units, 4};
  EXPECT_TRUE(fits(view, {split(0)}, Mesh({{"x", 3}})));
  EXPECT_FALSE(fits(view, {split(0)}, Mesh({{"x", 4}})));
  EXPECT_FALSE(fits(view, {split(0), split(0)}, Mesh({{"x", 2}, {"y", 2}})));
  EXPECT_FALSE(fits(view, {split(1)}, Mesh({{"x", 2}})));
}

}  // namespace
}  // namespace millrace::shard
