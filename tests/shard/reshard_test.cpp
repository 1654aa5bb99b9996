// The cost table of METHODS 7, byte for byte, and the steps of conversions.
#include <gtest/gtest.h>

#include <array>

#include "tests/shard/cut_graph.h"
#include "tests/shard/parts.h"

namespace millrace::shard {
namespace {

struct Sample {
  std::vector<std::int64_t> extents{8, 12};
  std::vector<std::int64_t> units = extents;
  TensorView view() const { return {extents, units, 4}; }
  double bytes() const { return static_cast<double>(view().bytes()); }
};

constexpr double kAlpha = 1e-5, kBeta = 1e-9;  // of flat_cluster

struct Total {
  std::vector<StepKind> kinds;
  std::int64_t moved = 0;
  double seconds = 0;
};

Total total(const Sample& sample, const Mesh& mesh, const Placement& from, const Placement& to) {
  const MeshLinks links(mesh, testing::flat_cluster(mesh.size()));
  Total sum;
  for (const Step& step : conversion(sample.view(), from, to, mesh)) {
    const StepCost cost = step_cost(sample.view(), step, mesh, links);
    sum.kinds.push_back(step.kind);
    sum.moved += cost.moved.value();
    sum.seconds += cost.time.value();
  }
  return sum;
}

Total one_axis(Property from, Property to, int n) { return total({}, Mesh({{"x", n}}), {from}, {to}); }

TEST(Reshard, OneAxisCostsAsTheTable) {
  const double t = Sample().bytes();
  for (const int n : {2, 4}) {
    const double others = n - 1;
    struct Row {
      Property from, to;
      StepKind kind;
      double moved, seconds;
    };
    const std::array rows{
        Row{split(0), split(1), StepKind::all_to_all, t * others / n, others * kAlpha + others / (n * n) * t * kBeta},
        Row{split(0), kReplicated, StepKind::all_gather, t * others, others * kAlpha + others / n * t * kBeta},
        Row{kPartialSum, split(1), StepKind::reduce_scatter, t * others, others * kAlpha + others / n * t * kBeta},
        Row{kPartialSum, kReplicated, StepKind::all_reduce, 2 * t * others,
            2 * others * kAlpha + 2 * others / n * t * kBeta},
        Row{kReplicated, split(0), StepKind::slice, 0, 0},
        Row{kReplicated, kPartialSum, StepKind::as_term, 0, kAlpha},
        Row{split(1), kPartialSum, StepKind::as_term, 0, kAlpha}};
    for (const Row& row : rows) {
      const Total found = one_axis(row.from, row.to, n);
      SCOPED_TRACE(std::string(name(row.kind)) + " on " + std::to_string(n));
      EXPECT_EQ(found.kinds, std::vector<StepKind>{row.kind});
      EXPECT_EQ(found.moved, static_cast<std::int64_t>(row.moved));
      EXPECT_NEAR(found.seconds, row.seconds, 1e-15);
      const cluster::Link link{BytesPerSecond(1e9), Seconds(kAlpha)};
      EXPECT_NEAR(axis_time(row.from, row.to, t, n, link).value(), row.seconds, 1e-15);
    }
    EXPECT_TRUE(one_axis(split(1), split(1), n).kinds.empty());
  }
}

// T · #{(a, b): ⌊(a·n₁ + b) / n₀⌋ ≠ b} / (n₀ n₁).
TEST(Reshard, OneAxisMoreOnADimensionThatIsCutAlready) {
  for (const auto& [n0, n1] : {std::pair{2, 2}, std::pair{2, 4}, std::pair{4, 2}, std::pair{3, 2}}) {
    const Mesh mesh({{"x", n0}, {"y", n1}});
    Sample sample{.extents = {24, 5}};
    sample.units = sample.extents;
    int moving = 0;
    for (int a = 0; a < n0; ++a) {
      for (int b = 0; b < n1; ++b) moving += (a * n1 + b) / n0 != b ? 1 : 0;
    }
    const Total found = total(sample, mesh, {kReplicated, split(0)}, {split(0), split(0)});
    EXPECT_EQ(found.kinds, std::vector<StepKind>{StepKind::all_to_all});
    EXPECT_EQ(found.moved, sample.view().bytes() * moving / (n0 * n1)) << n0 << " x " << n1;
    EXPECT_GT(moving, 0);
  }
}

TEST(Reshard, MovesOneAxisAtATime) {
  const Mesh mesh({{"x", 2}, {"y", 4}});
  const auto kinds = [&](Placement from, Placement to) { return total({}, mesh, from, to).kinds; };
  using enum StepKind;
  EXPECT_EQ(kinds({split(0), split(1)}, {split(0), kReplicated}), (std::vector{all_gather}));
  EXPECT_EQ(kinds({kPartialSum, split(1)}, {kReplicated, kReplicated}), (std::vector{all_reduce, all_gather}));
  EXPECT_EQ(kinds({split(0), kReplicated}, {split(0), split(0)}), (std::vector{slice}));
  EXPECT_EQ(kinds({split(0), split(0)}, {kReplicated, kReplicated}), (std::vector{all_gather, all_gather}));
  // First what is free: then less is gathered.
  EXPECT_EQ(kinds({split(0), kReplicated}, {kReplicated, split(1)}), (std::vector{slice, all_gather}));
  // On each row of the mesh a half of the tensor is gathered from four.
  EXPECT_EQ(total({}, mesh, {split(0), split(1)}, {split(0), kReplicated}).moved, Sample().view().bytes() * 3);
}

TEST(Reshard, UnevenRatiosMoveDifferencesOfIntervals) {
  Mesh mesh({{"x", 2}});
  const int ratio = mesh.add_ratio({3, 1});
  Sample sample{.extents = {8}};
  sample.units = sample.extents;
  // 4 + 4 becomes 6 + 2: the first fetches two elements, the second has its own already.
  const Total found = total(sample, mesh, {split(0)}, {split(0, ratio)});
  EXPECT_EQ(found.kinds, std::vector<StepKind>{StepKind::all_to_all});
  EXPECT_EQ(found.moved, 2 * 4);
}

TEST(Reshard, MaximaAreTakenAsMaxima) {
  const Mesh mesh({{"x", 2}});
  const auto steps = conversion(Sample().view(), {kPartialMax}, {kReplicated}, mesh);
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_TRUE(steps[0].largest);
}

// Every placement of two axes into every other, executed: the tensor is the same after it.
TEST(Reshard, EveryConversionKeepsTheTensor) {
  Mesh mesh({{"x", 2}, {"y", 3}});
  const int ratio = mesh.add_ratio({1, 2, 4});
  Sample sample{.extents = {7, 9}};
  sample.units = sample.extents;
  testing::Numbers whole;
  for (int i = 0; i < 63; ++i) whole.push_back(i * 0.5 - 7);
  const std::vector<Property> first{kReplicated, split(0), split(1), kPartialSum};
  std::vector<Property> second = first;
  second.push_back(split(0, ratio));
  second.push_back(split(1, ratio));
  int tried = 0;
  for (const Property a : first) {
    for (const Property b : second) {
      for (const Property c : first) {
        for (const Property d : second) {
          const Placement from{a, b}, to{c, d};
          if (!fits(sample.view(), from, mesh) || !fits(sample.view(), to, mesh)) continue;
          SCOPED_TRACE(format(from, mesh) + " to " + format(to, mesh));
          testing::Parts parts = testing::cut(whole, sample.view(), from, mesh);
          for (const Step& step : conversion(sample.view(), from, to, mesh)) {
            parts = testing::convert(parts, sample.view(), step, mesh);
          }
          const testing::Numbers found = testing::join(parts, sample.view(), to, mesh);
          for (std::size_t i = 0; i < whole.size(); ++i) ASSERT_NEAR(found[i], whole[i], 1e-12);
          ++tried;
        }
      }
    }
  }
  EXPECT_GE(tried, 400);
}

}  // namespace
}  // namespace millrace::shard
