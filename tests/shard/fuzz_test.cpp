// Random signatures and placements of every operator and tensor of whole networks give what one device gives: the
// conversions of forward and backward fit together whatever is decided.
#include <gtest/gtest.h>

#include "base/random.h"
#include "models/families.h"
#include "tests/shard/expect_equal.h"

namespace millrace::shard {
namespace {

using testing::CutGraph;

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : random_(seed, "sharding") {}
  std::size_t below(std::size_t bound) { return random_.below(bound, next_++); }

 private:
  Random random_;
  std::uint64_t next_ = 0;
};

void expect_any_decision_equal(CutGraph& cut, std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Draws draws(seed);
  Decision decision = cut.whole();
  for (int axis = 0; axis < cut.mesh.axis_count(); ++axis) {
    std::vector<double> weights;
    for (int i = 0; i < cut.mesh.axis_size(axis); ++i) weights.push_back(1.0 + static_cast<double>(i));
    const int ratio = cut.mesh.add_ratio(weights);
    const auto at = static_cast<std::size_t>(axis);
    for (OpId op = 0; op < cut.graph.size(); ++op) {
      Uses& uses = decision.uses[static_cast<std::size_t>(op)];
      const std::vector<Use> all = cut.ops.uses(op);
      Uses drawn = uses;
      drawn[at] = all[draws.below(all.size())];
      if (drawn[at].kind == Use::Kind::letter && draws.below(2) == 0)
        drawn[at].ratio = static_cast<std::int16_t>(ratio);
      if (cut.fits(op, drawn)) uses = drawn;
    }
    for (TensorId id = 0; id < static_cast<TensorId>(cut.graph.tensors().size()); ++id) {
      const TensorView view = cut.tensors.view(id);
      Placement& placement = decision.placements[static_cast<std::size_t>(id)];
      if (view.extents.empty() || draws.below(2) == 0) continue;
      Placement drawn = placement;
      drawn[at] = split(static_cast<int>(draws.below(view.extents.size())));
      if (fits(view, drawn, cut.mesh)) placement = drawn;
    }
  }
  expect_same_as_whole(cut, cut.expand(decision, {.synchronised_batch_norm = true}));
}

TEST(Fuzz, Transformer) {
  const Graph graph = models::make_gpt(
      {.layers = 1, .width = 8, .heads = 4, .sequence = 4, .vocabulary = 11, .tied = true, .dropout = 0.2});
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    CutGraph one(graph, 4, {{"a", 2}});
    expect_any_decision_equal(one, seed);
    CutGraph two(graph, 4, {{"a", 2}, {"b", 2}});
    expect_any_decision_equal(two, seed + 100);
  }
}

TEST(Fuzz, ConvolutionsAndBranches) {
  const Graph graph =
      models::make_resnet("tiny", {.blocks = {1, 1}, .width = 4, .small_stem = true, .classes = 5, .image = 5});
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    CutGraph two(graph, 4, {{"a", 2}, {"b", 2}});
    expect_any_decision_equal(two, seed);
  }
}

TEST(Fuzz, Bert) {
  const Graph graph =
      models::make_bert("bert", {.layers = 1, .width = 8, .heads = 2, .sequence = 4, .vocabulary = 7, .tied = true});
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    CutGraph two(graph, 3, {{"a", 3}, {"b", 2}});
    expect_any_decision_equal(two, seed);
  }
}

}  // namespace
}  // namespace millrace::shard
