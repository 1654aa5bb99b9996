// The pieces of the searches for max_load: reductions, linear cuts, bounds from single items, growing stages.
#include <gtest/gtest.h>

#include <numeric>

#include "partitioners/common/max_load/chain_search.h"
#include "partitioners/common/max_load/growing_stage.h"
#include "partitioners/common/max_load/ideal_set.h"
#include "partitioners/common/max_load/item_bound.h"
#include "partitioners/common/max_load/linear_cut.h"
#include "partitioners/common/max_load/max_flow.h"
#include "partitioners/common/max_load/orders.h"
#include "partitioners/common/max_load/proof.h"
#include "partitioners/common/max_load/reduce.h"
#include "tests/partitioners/max_load/cases.h"
#include "tests/partitioners/no_deadline.h"

namespace millrace::partitioners::max_load {
namespace {

using testing_support::best_by_trying;
using testing_support::load_of;
using testing_support::random_split;
using testing_support::Split;
using testing_support::SplitCase;

constexpr double kInfinite = std::numeric_limits<double>::infinity();

Model model_of(const Split& split) { return make_model(SplitCase(split).problem); }

Split chain_of(const std::vector<double>& seconds, const std::vector<double>& transfers, int accelerators) {
  Split split;
  for (std::size_t op = 0; op < seconds.size(); ++op) {
    split.model.ops.push_back({seconds[op], 10 * seconds[op], 1, true, 1});
    if (op == 0) continue;
    const auto from = static_cast<OpId>(op) - 1;
    split.edges.emplace_back(from, static_cast<int>(op));
    split.model.transfers.push_back({from, {static_cast<OpId>(op)}, transfers[op - 1]});
  }
  split.model.accelerators = accelerators;
  split.model.memory_bytes = static_cast<double>(seconds.size());
  return split;
}

TEST(MaxLoadReduce, AWeightlessItemJoinsItsNeighbourAcrossTheDearerTransfer) {
  // 3 -5- 0 -4- 3: the middle joins the first; nothing else is weightless.
  const Model small = reduced(model_of(chain_of({3, 0, 3}, {5, 4}, 2)), kInfinite);
  ASSERT_EQ(small.size(), 2U);
  EXPECT_EQ(small.members[0], (std::vector<OpId>{0, 1}));
  ASSERT_EQ(small.transfers.size(), 1U);
  EXPECT_EQ(small.transfers[0].seconds, 4);
}

TEST(MaxLoadReduce, ItemsWhoseSeparationCostsTheThresholdStayTogether) {
  const Split split = chain_of({3, 2, 4}, {6, 1}, 3);
  EXPECT_EQ(reduced(model_of(split), 9.5).size(), 3U);  // apart: 3 + 6 and 2 + 6
  const Model small = reduced(model_of(split), 9);
  ASSERT_EQ(small.size(), 2U);
  EXPECT_EQ(small.accelerator_s, (std::vector<double>{5, 4}));
}

TEST(MaxLoadReduce, ACycleOfGroupsIsOneItem) {
  // n0 and n2 cannot be apart, so n1 between them is with them.
  Split split = chain_of({3, 2, 4}, {0, 0}, 3);
  split.model.transfers.push_back({2, {0}, 50});
  EXPECT_EQ(reduced(model_of(split), 20).size(), 1U);
}

TEST(MaxLoadReduce, FreeItemsAreLeftOutAndPutBackBehindWhatTheyRead) {
  Split split = chain_of({3, 0, 4}, {0, 0}, 2);
  const Model model = model_of(split);
  const Model small = reduced(model, kInfinite);
  ASSERT_EQ(small.size(), 2U);
  EXPECT_EQ(small.after[0], std::vector<Item>{1});
  const Parts parts = placed(model, small, {{0, {0}}, {0, {1}}});
  EXPECT_EQ(parts[0].items, (std::vector<Item>{0, 1}));
  EXPECT_EQ(parts[1].items, std::vector<Item>{2});
}

TEST(MaxLoadReduce, BytesCountWhereTheyCanBeTooMany) {
  Split split = chain_of({3, 0, 4}, {2, 2}, 2);
  EXPECT_EQ(reduced(model_of(split), kInfinite).size(), 2U);
  split.model.memory_bytes = 2;
  EXPECT_EQ(reduced(model_of(split), kInfinite).size(), 3U);
}

TEST(MaxLoadReduce, TheBestChainIsNeitherLostNorMadeBetter) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const Split split = random_split(6, seed);
    const double best = best_by_trying(split, true);
    if (best == kInfinite) continue;
    const Model model = model_of(split);
    const Model small = reduced(model, best * (1 + 1e-9) + 1e-9);
    ChainSearch search(small, best * (1 + 1e-9) + 1e-9, {});
    ASSERT_EQ(search.run(), Verdict::found) << seed;
    EXPECT_NEAR(max_load(model, placed(model, small, search.chain())), best, 1e-9) << seed;
    if (best == 0) continue;
    const Model smaller = reduced(model, best * (1 - 1e-9));
    ChainSearch less(smaller, best * (1 - 1e-9), {});
    EXPECT_EQ(less.run(), Verdict::none) << seed;
  }
}

TEST(MaxLoadGrowingStage, KeepsItsLoadThroughAnySteps) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Split split = random_split(8, seed);
    const Model model = model_of(split);
    const Random random(seed, "steps");
    std::vector<bool> earlier(model.size(), false);
    std::uint32_t inside = 0;
    GrowingStage stage(model);
    for (Item item = 0; item < model.size(); ++item) earlier[item] = random.below(4, item) == 0;
    stage.start(earlier, model.kinds[0]);
    double committed = 0;
    for (Item item = 0; item < model.size(); ++item) {
      if (earlier[item] || !model.on_accelerator(item)) continue;
      const bool take = random.below(2, 100 + item) == 0;
      // A step there and back changes nothing.
      const double load = stage.load();
      stage.add(item);
      stage.undo_add(item);
      stage.exclude(item);
      stage.undo_exclude(item);
      EXPECT_EQ(stage.load(), load);
      take ? stage.add(item) : stage.exclude(item);
      if (take) inside |= 1U << item;
      EXPECT_GE(stage.committed() + 1e-12, committed);
      committed = stage.committed();
    }
    Split unlimited = split;
    unlimited.model.memory_bytes = 1e9;
    EXPECT_DOUBLE_EQ(stage.load(), load_of(unlimited.model, inside, false)) << seed;
    EXPECT_LE(stage.committed(), stage.load() + 1e-12);
  }
}

TEST(MaxLoadItemBound, IsTheLeastLoadOfADeviceWithTheWorstItem) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Split split = random_split(7, seed);
    split.model.memory_bytes = 1e9;
    double expected = 0;
    for (OpId op = 0; op < 7; ++op) {
      double least = kInfinite;
      for (std::uint32_t set = 0; set < 1U << 7; ++set) {
        if ((set >> op & 1U) == 0) continue;
        least = std::min(least, load_of(split.model, set, false));
        if (split.model.cpus > 0) least = std::min(least, load_of(split.model, set, true));
      }
      expected = std::max(expected, least);
    }
    EXPECT_NEAR(item_bound(model_of(split), kInfinite, kNoDeadline), expected, 1e-9) << seed;
  }
}

TEST(MaxLoadFlow, IsTheMinimumCut) {
  FlowNetwork network(4);
  network.add_edge(0, 1, 3);
  network.add_edge(0, 2, 2);
  network.add_edge(1, 2, 5);
  network.add_edge(1, 3, 2);
  network.add_edge(2, 3, 3);
  EXPECT_EQ(network.max_flow(0, 3, kInfinite), 5);
  EXPECT_EQ(network.max_flow(1, 3, kInfinite), 5);
  EXPECT_EQ(network.max_flow(3, 0, kInfinite), 0);
}

TEST(MaxLoadLinearCut, CutsTheOrderItself) {
  // Two independent chains; the order that mixes them has worse cuts than the one that does not.
  Split split = chain_of({4, 4, 4, 4}, {0, 0, 0}, 2);
  split.edges = {{0, 1}, {2, 3}};
  split.model.transfers = {{0, {1}, 10}, {2, {3}, 10}};
  const Model model = model_of(split);
  const std::vector<Item> apart{0, 1, 2, 3}, mixed{0, 2, 1, 3};
  EXPECT_EQ(max_load(model, best_cut(model, apart, kInfinite, kNoDeadline)), 8);
  EXPECT_EQ(max_load(model, best_cut(model, mixed, kInfinite, kNoDeadline)), 16);
  EXPECT_TRUE(best_cut(model, mixed, 16, kNoDeadline).empty());
}

TEST(MaxLoadLinearCut, LongOrdersAreCutAtTheirCheapestPlaces) {
  std::vector<double> seconds(8'000, 1.0), transfers(7'999, 50.0);
  for (std::size_t at = 9; at < transfers.size(); at += 10) transfers[at] = 0.5;
  const Model model = model_of(chain_of(seconds, transfers, 4));
  std::vector<Item> order(seconds.size());
  std::iota(order.begin(), order.end(), Item{0});
  const Parts parts = best_cut(model, order, kInfinite, kNoDeadline);
  ASSERT_EQ(parts.size(), 4U);
  EXPECT_EQ(max_load(model, parts), 2001);
}

TEST(MaxLoadOrders, TheWaitingOrderClosesTransfersBeforeItOpensOthers) {
  // n0 feeds two long branches; taking turns keeps two transfers open.
  Split split;
  split.model.ops.assign(7, {1, 1, 0, true, 1});
  split.edges = {{0, 1}, {0, 2}, {1, 3}, {2, 4}, {3, 5}, {4, 5}, {5, 6}};
  split.model.transfers = {{0, {1, 2}, 1}, {1, {3}, 9}, {2, {4}, 9}, {3, {5}, 2}, {4, {5}, 2}, {5, {6}, 1}};
  split.model.accelerators = 1;
  EXPECT_EQ(fewest_waiting_seconds(model_of(split)), (std::vector<Item>{0, 1, 3, 2, 4, 5, 6}));
}

TEST(MaxLoadIdealSet, TellsSetsApartAndFindsThemAgain) {
  IdealSet set(130);
  std::vector<std::uint64_t> words(3, 0);
  std::uint64_t hash = 0;
  for (std::uint32_t item = 0; item < 130; ++item) {
    EXPECT_EQ(set.insert(words, hash), item);
    words[item / 64] |= std::uint64_t{1} << (item % 64);
    hash ^= set.item_hash(item);
    EXPECT_EQ(set.find(words, hash), IdealSet::kNone);
  }
  const std::vector<std::uint64_t> one{1, 0, 0};
  EXPECT_EQ(set.find(one, set.item_hash(0)), 1U);
  EXPECT_EQ(set.find(one, 0), IdealSet::kNone);  // the hash is part of the question
}

TEST(MaxLoadProof, StepsEndASearchAlikeOnEveryMachine) {
  const Model model = model_of(testing_support::wide_split(12, 6));
  std::vector<Item> order(model.size());
  std::iota(order.begin(), order.end(), Item{0});
  const Parts known = best_cut(model, order, kInfinite, kNoDeadline);
  const Proof few = prove(model, known, 0, {.deadline = kNoDeadline, .steps = 20'000});
  const Proof again = prove(model, known, 0, {.deadline = kNoDeadline, .steps = 20'000});
  EXPECT_EQ(few.load, again.load);
  EXPECT_EQ(few.bound, again.bound);
  EXPECT_FALSE(few.complete());
  EXPECT_GT(few.bound, 0);
  EXPECT_LE(few.load, max_load(model, known));
}

}  // namespace
}  // namespace millrace::partitioners::max_load
