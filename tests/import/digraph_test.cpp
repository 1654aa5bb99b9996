// Orders, cycles and components, on graphs by hand and against brute force on random ones.
#include "import/digraph.h"

#include <gmock/gmock.h>

#include "base/random.h"

namespace millrace::import {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(DepthFirstOrder, StaysOnABranch) {
  EXPECT_THAT(depth_first_order({{1, 3}, {2}, {5}, {4}, {5}, {}}), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(depth_first_order({{}, {}, {}}), ElementsAre(0, 1, 2));
  EXPECT_THAT(depth_first_order({{}, {0}, {0, 0}}), ElementsAre(1, 2, 0));
}

TEST(FindCycle, NamesItsNodesInOrder) {
  EXPECT_THAT(find_cycle({{1}, {2}, {}}), IsEmpty());
  EXPECT_THAT(find_cycle({{1}, {2}, {3}, {1}}), ElementsAre(1, 2, 3));
  EXPECT_THAT(find_cycle({{}, {1}}), ElementsAre(1));
}

TEST(Components, AreNumberedByFirstNodes) {
  EXPECT_THAT(components({{1}, {2}, {1, 3}, {}}), ElementsAre(0, 1, 1, 2));
  EXPECT_THAT(components({{1}, {2}, {0}}), ElementsAre(0, 0, 0));
}

TEST(Digraph, AgreesWithReachabilityOnRandomGraphs) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Random random(seed, "digraph");
    std::uint64_t drawn = 0;
    const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random.below(bound, drawn++)); };
    const std::size_t size = 1 + below(7);
    Successors successors(size);
    std::vector<std::vector<bool>> reach(size, std::vector<bool>(size, false));
    for (std::size_t edge = below(2 * size + 1); edge > 0; --edge) {
      const std::size_t from = below(size), to = below(size);
      successors[from].push_back(to);
      reach[from][to] = true;
    }
    for (std::size_t k = 0; k < size; ++k) {
      for (std::size_t i = 0; i < size; ++i) {
        for (std::size_t j = 0; j < size; ++j) reach[i][j] = reach[i][j] || (reach[i][k] && reach[k][j]);
      }
    }
    const std::vector<std::size_t> component = components(successors);
    bool cyclic = false;
    for (std::size_t i = 0; i < size; ++i) {
      cyclic = cyclic || reach[i][i];
      for (std::size_t j = 0; j < size; ++j) {
        EXPECT_EQ(component[i] == component[j], i == j || (reach[i][j] && reach[j][i])) << seed;
      }
    }
    EXPECT_EQ(find_cycle(successors).empty(), !cyclic) << seed;
    if (cyclic) continue;
    const std::vector<std::size_t> order = depth_first_order(successors);
    ASSERT_EQ(order.size(), size);
    std::vector<std::size_t> position(size);
    for (std::size_t i = 0; i < size; ++i) position[order[i]] = i;
    for (std::size_t i = 0; i < size; ++i) {
      for (const std::size_t next : successors[i]) EXPECT_LT(position[i], position[next]) << seed;
    }
  }
}

TEST(Digraph, LongChainsNeedNoStack) {
  constexpr std::size_t kSize = 200'000;
  Successors chain(kSize);
  for (std::size_t i = 0; i + 1 < kSize; ++i) chain[i].push_back(i + 1);
  EXPECT_TRUE(find_cycle(chain).empty());
  EXPECT_EQ(components(chain).back(), kSize - 1);
  chain.back().push_back(0);
  EXPECT_EQ(find_cycle(chain).size(), kSize);
  EXPECT_EQ(components(chain).back(), 0U);
}

}  // namespace
}  // namespace millrace::import
