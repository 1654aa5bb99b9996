// Made-up graphs: acyclic, as many operators as asked for, as wide as promised, and functions of their options alone.
#include "models/synthetic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "models/registry.h"

namespace millrace::models {
namespace {

using Shape = SyntheticShape;

constexpr Shape kShapes[] = {Shape::chain,        Shape::series_parallel, Shape::layered,
                             Shape::nasnet_cells, Shape::skip_heavy,      Shape::random_dag};

std::string name(Shape shape) { return synthetic_shape_names()[static_cast<std::size_t>(shape)]; }

/// Whether operator b needs operator a, for all pairs.
std::vector<std::vector<bool>> closure(const Graph& graph) {
  const auto size = static_cast<std::size_t>(graph.size());
  std::vector<std::vector<bool>> needs(size, std::vector<bool>(size, false));
  for (std::size_t b = 0; b < size; ++b) {
    for (const TensorId input : graph.op(static_cast<OpId>(b)).inputs) {
      const auto a = static_cast<std::size_t>(graph.tensor(input).producer);
      needs[b][a] = true;
      for (std::size_t c = 0; c < a; ++c) needs[b][c] = needs[b][c] || needs[a][c];
    }
  }
  return needs;
}

/// Operators of which none needs another, at most: operators less a largest matching of pairs that need each other
/// (Dilworth, Fulkerson).
class Width {
 public:
  explicit Width(const Graph& graph) : needs_(closure(graph)), partner_(needs_.size(), kNone) {}

  std::int64_t operator()() {
    std::size_t matched = 0;
    for (std::size_t b = 0; b < needs_.size(); ++b) {
      std::vector<bool> seen(needs_.size(), false);
      matched += augment(b, seen) ? 1U : 0U;
    }
    return static_cast<std::int64_t>(needs_.size() - matched);
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  bool augment(std::size_t b, std::vector<bool>& seen) {
    for (std::size_t a = 0; a < needs_.size(); ++a) {
      if (!needs_[b][a] || seen[a]) continue;
      seen[a] = true;
      if (partner_[a] == kNone || augment(partner_[a], seen)) {
        partner_[a] = b;
        return true;
      }
    }
    return false;
  }

  std::vector<std::vector<bool>> needs_;
  std::vector<std::size_t> partner_;
};

std::int64_t width(const Graph& graph) { return Width(graph)(); }

/// Outputs of the first `ops` operators that later ones read.
std::int64_t open_tensors(const Graph& graph, OpId ops) {
  std::int64_t open = 0;
  for (OpId id = 0; id < ops; ++id) {
    const auto readers = graph.consumers(graph.op(id).outputs[0]);
    open += !readers.empty() && readers.back() >= ops ? 1 : 0;
  }
  return open;
}

class EveryShape : public testing::TestWithParam<Shape> {};

TEST_P(EveryShape, HasAsManyOperatorsAsAskedForAndReadsOnlyEarlierOnes) {
  for (const std::int64_t operators : {1, 2, 3, 4, 5, 7, 12, 13, 100, 257}) {
    for (const std::int64_t width : {1, 2, 3, 8, 50}) {
      for (const std::uint64_t seed : {1, 2, 3}) {
        const Graph graph = make_synthetic({GetParam(), operators, width, seed});
        ASSERT_EQ(graph.size(), operators) << width;
        int sources = 0;
        for (OpId id = 0; id < graph.size(); ++id) {
          const Operator& op = graph.op(id);
          ASSERT_NE(graph.figures(id), nullptr);
          sources += op.inputs.empty() ? 1 : 0;
          for (const TensorId input : op.inputs) ASSERT_LT(graph.tensor(input).producer, id);
          ASSERT_TRUE(id + 1 == graph.size() || !graph.consumers(op.outputs[0]).empty()) << op.name;
        }
        EXPECT_EQ(sources, 1);
      }
    }
  }
}

TEST_P(EveryShape, IsAFunctionOfItsOptionsAlone) {
  std::set<std::string> digests;
  for (const std::int64_t operators : {60, 61}) {
    for (const std::int64_t width : {2, 5}) {
      for (const std::uint64_t seed : {1, 2, 3}) {
        const SyntheticOptions options{GetParam(), operators, width, seed};
        const std::string digest = make_synthetic(options).digest();
        EXPECT_EQ(make_synthetic(options).digest(), digest);
        digests.insert(digest);
      }
    }
  }
  EXPECT_EQ(digests.size(), GetParam() == Shape::chain ? 6U : 12U);  // a chain has no width
}

TEST_P(EveryShape, IsAsWideAsAskedFor) {
  for (const std::int64_t asked : {1, 2, 4, 7, 20}) {
    for (const std::uint64_t seed : {1, 2, 3}) {
      const Graph graph = make_synthetic({GetParam(), 150, asked, seed});
      switch (GetParam()) {
        case Shape::chain:
          EXPECT_EQ(width(graph), 1);
          break;
        case Shape::skip_heavy:
          EXPECT_EQ(width(graph), 1);
          for (const OpId cut : {40, 75, 110}) EXPECT_EQ(open_tensors(graph, cut), asked + 1) << cut;
          break;
        case Shape::nasnet_cells:  // the branches of two cells overlap, as the second reads across the first
          EXPECT_GE(width(graph), asked);
          EXPECT_LE(width(graph), 2 * asked + 1);
          break;
        default:
          EXPECT_EQ(width(graph), asked) << seed;
      }
    }
  }
}

TEST_P(EveryShape, DrawsFiguresFromTheirRanges) {
  const Graph graph = make_synthetic({GetParam(), 2000, 8, 5});
  std::int64_t with_parameters = 0;
  double least = 1, most = 0;
  for (OpId id = 0; id < graph.size(); ++id) {
    const OpFigures& figures = *graph.figures(id);
    with_parameters += figures.parameter_bytes > 0 ? 1 : 0;
    least = std::min(least, figures.forward_s);
    most = std::max(most, figures.forward_s);
    EXPECT_GE(figures.output_bytes, 64 << 10);
    EXPECT_LE(figures.output_bytes, 2 << 20);
    EXPECT_EQ(figures.parameter_bytes % 4, 0);
    EXPECT_EQ(figures.parameter_bytes > 0, figures.backward_weight_s > 0);
    EXPECT_LE(figures.parameter_bytes, 4 << 20);
  }
  EXPECT_GE(least, 1e-7);
  EXPECT_LE(most, 1e-3);
  EXPECT_GT(most, 9e-4);
  EXPECT_GT(with_parameters, 500);
  EXPECT_LT(with_parameters, 1100);
}

INSTANTIATE_TEST_SUITE_P(Synthetic, EveryShape, testing::ValuesIn(kShapes),
                         [](const testing::TestParamInfo<Shape>& row) { return name(row.param); });

TEST(Synthetic, IsAModel) {
  const Graph graph = make("synthetic", {{"shape", "layered"}, {"operators", "50"}, {"width", "4"}, {"seed", "9"}});
  EXPECT_EQ(graph.digest(), make_synthetic({Shape::layered, 50, 4, 9}).digest());
  EXPECT_EQ(graph.name(), "synthetic");
  EXPECT_FALSE(graph.trainable());
}

// The shape and every figure are the same on every machine, so that published results can be made again.
TEST(Synthetic, StaysTheSame) {
  EXPECT_EQ(make_synthetic({Shape::random_dag, 1000, 8, 1}).digest(), "622e0e38df0b22e98fb84313db0dbc0c");
}

TEST(Synthetic, BranchesAreEmittedOneByOne) {
  const Graph graph = make_synthetic({Shape::series_parallel, 2000, 16, 1});
  std::int64_t follow = 0;
  for (OpId id = 1; id < graph.size(); ++id) {
    const auto& inputs = graph.op(id).inputs;
    follow += std::any_of(inputs.begin(), inputs.end(), [&](TensorId t) { return graph.tensor(t).producer == id - 1; });
  }
  EXPECT_GT(follow, graph.size() / 2);
}

TEST(Synthetic, AHundredThousandOperators) {
  EXPECT_EQ(make_synthetic({Shape::random_dag, 100'000, 16, 1}).size(), 100'000);
}

}  // namespace
}  // namespace millrace::models
