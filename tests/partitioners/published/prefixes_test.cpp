// Down-sets of graphs: all of them, some of them, and those near others.
#include <gtest/gtest.h>

#include <set>

#include "partitioners/common/prefixes.h"
#include "tests/partitioners/no_deadline.h"
#include "tests/partitioners/published/cases.h"

namespace millrace::partitioners {
namespace {

ItemGraph random_items(int size, std::uint64_t seed) {
  ItemGraph readers(static_cast<std::size_t>(size));
  const std::vector<testing_support::Layer> layers = testing_support::random_layers(size, seed);
  for (int item = 0; item < size; ++item) {
    for (const int read : layers[static_cast<std::size_t>(item)].reads) {
      readers[static_cast<std::size_t>(read)].push_back(item);
    }
  }
  return readers;
}

std::vector<bool> members(const Prefixes& prefixes, std::size_t prefix) {
  std::vector<bool> in;
  for (std::size_t item = 0; item < prefixes.items(); ++item)
    in.push_back(prefixes.has(prefix, static_cast<int>(item)));
  return in;
}

// Distinct down-sets, from the empty one to the full one, sizes ascending, and within() tells inclusion.
void expect_sound(const Prefixes& prefixes, const ItemGraph& readers) {
  std::set<std::vector<bool>> known;
  std::ptrdiff_t size = 0;
  for (std::size_t p = 0; p < prefixes.size(); ++p) {
    const std::vector<bool> in = members(prefixes, p);
    EXPECT_TRUE(known.insert(in).second);
    EXPECT_GE(std::count(in.begin(), in.end(), true), size);
    size = std::count(in.begin(), in.end(), true);
    for (std::size_t item = 0; item < readers.size(); ++item) {
      for (const int reader : readers[item]) EXPECT_TRUE(in[item] || !in[static_cast<std::size_t>(reader)]);
    }
  }
  EXPECT_EQ(std::count(known.begin()->begin(), known.begin()->end(), true), 0);
  EXPECT_EQ(size, static_cast<std::ptrdiff_t>(readers.size()));
  for (std::size_t a = 0; a < prefixes.size(); a += 3) {
    for (std::size_t b = a; b < prefixes.size(); b += 2) {
      const std::vector<bool> inner = members(prefixes, a), outer = members(prefixes, b);
      bool within = true;
      for (std::size_t item = 0; item < inner.size(); ++item) within = within && (!inner[item] || outer[item]);
      EXPECT_EQ(prefixes.within(a, b), within);
    }
  }
}

TEST(Prefixes, AllOfAChainOfBranchesAndOfNoEdges) {
  EXPECT_EQ(Prefixes::all({{1}, {2}, {}}, 100, kNoDeadline)->size(), 4u);
  EXPECT_EQ(Prefixes::all({{1, 2}, {3}, {3}, {}}, 100, kNoDeadline)->size(), 6u);
  EXPECT_EQ(Prefixes::all(ItemGraph(10), 1024, kNoDeadline)->size(), 1024u);
  EXPECT_FALSE(Prefixes::all(ItemGraph(10), 1023, kNoDeadline));
  EXPECT_FALSE(Prefixes::all(ItemGraph(3), 100, std::chrono::steady_clock::time_point::min()));
}

TEST(Prefixes, AreDownSetsEachOnce) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const ItemGraph readers = random_items(9, seed);
    const Prefixes all = *Prefixes::all(readers, 512, kNoDeadline);
    EXPECT_TRUE(all.complete());
    expect_sound(all, readers);
    // Counted the plain way.
    std::size_t count = 0;
    for (unsigned set = 0; set < 512; ++set) {
      bool closed = true;
      for (std::size_t item = 0; item < 9; ++item) {
        for (const int reader : readers[item]) closed = closed && ((set >> item & 1) != 0 || (set >> reader & 1) == 0);
      }
      count += closed ? 1 : 0;
    }
    EXPECT_EQ(all.size(), count);
  }
}

TEST(Prefixes, OfOrdersAndNearOthers) {
  const ItemGraph readers = random_items(100, 1);
  std::vector<double> forward(100), backward(100);
  for (std::size_t i = 0; i < 100; ++i) {
    forward[i] = static_cast<double>(i);
    backward[i] = -forward[i];
  }
  const std::vector<std::vector<int>> orders{order_by_key(readers, forward), order_by_key(readers, backward)};
  EXPECT_NE(orders[0], orders[1]);
  const Prefixes some = Prefixes::some(readers, orders);
  EXPECT_FALSE(some.complete());
  EXPECT_GT(some.size(), 150u);
  expect_sound(some, readers);
  const std::vector<std::size_t> centres{some.size() / 2};
  const Prefixes near = Prefixes::around(readers, some, centres, 50);
  expect_sound(near, readers);
  EXPECT_GE(near.size(), 50u);
  bool found = false;
  for (std::size_t p = 0; p < near.size(); ++p) found = found || members(near, p) == members(some, centres[0]);
  EXPECT_TRUE(found);
  const std::vector<std::size_t> cuts{0, 20, 70, 100};
  expect_sound(Prefixes::of_order(orders[1], cuts), readers);
}

}  // namespace
}  // namespace millrace::partitioners
