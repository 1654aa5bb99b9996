// The exact partitioner against all plans of its class on every graph of six operators, and of seven up to renaming.
#include <functional>

#include <gmock/gmock.h>

#include "tests/partitioners/exact_on_all.h"
#include "tests/partitioners/tiny_problems.h"

namespace millrace::partitioners {
namespace {

using testing_support::dag;
using testing_support::dag_count;
using testing_support::TinyCase;

// Whether no renaming of the operators that keeps edges ascending gives a smaller number.
bool smallest_of_its_kind(int size, std::uint64_t edges) {
  std::vector<unsigned> needs(static_cast<std::size_t>(size), 0);
  std::vector<std::vector<int>> bit(static_cast<std::size_t>(size), std::vector<int>(static_cast<std::size_t>(size)));
  int pair = 0;
  for (int i = 0; i < size; ++i) {
    for (int j = i + 1; j < size; ++j, ++pair) {
      bit[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] = pair;
      if ((edges >> pair & 1) != 0) needs[static_cast<std::size_t>(j)] |= 1U << i;
    }
  }
  std::vector<int> place(static_cast<std::size_t>(size), -1);  // new number of each operator
  const std::function<bool(unsigned, int, std::uint64_t)> none_smaller = [&](unsigned done, int next,
                                                                             std::uint64_t renamed) {
    if (next == size) return renamed >= edges;
    for (int op = 0; op < size; ++op) {
      const auto at = static_cast<std::size_t>(op);
      if ((done >> op & 1) != 0 || (needs[at] & ~done) != 0) continue;
      std::uint64_t with_it = renamed;
      for (int before = 0; before < size; ++before) {
        if ((needs[at] >> before & 1) == 0) continue;
        const auto from = static_cast<std::size_t>(place[static_cast<std::size_t>(before)]);
        with_it |= std::uint64_t{1} << bit[from][static_cast<std::size_t>(next)];
      }
      place[at] = next;
      if (!none_smaller(done | 1U << op, next + 1, with_it)) return false;
    }
    return true;
  };
  return none_smaller(0, 0, 0);
}

TEST(ExactOnAll, GraphsUpToRenamingAreAsManyAsIsKnown) {
  for (const auto& [size, known] : {std::pair{3, 6}, {4, 31}, {5, 302}, {6, 5984}}) {  // acyclic digraphs, OEIS A003087
    int count = 0;
    for (std::uint64_t edges = 0; edges < dag_count(size); ++edges) count += smallest_of_its_kind(size, edges) ? 1 : 0;
    EXPECT_EQ(count, known);
  }
}

TEST(ExactOnAll, GraphsOfSixOperators) {
  for (std::uint64_t edges = 0; edges < dag_count(6); ++edges) {
    TinyCase c(dag(6, edges, 11), 12, edges);
    expect_equals_all(c, fmt::format("6 operators, edges {}", edges));
    if (testing::Test::HasFailure()) return;
  }
}

TEST(ExactOnAll, GraphsOfSevenOperatorsUpToRenaming) {
  for (std::uint64_t edges = 0; edges < dag_count(7); ++edges) {
    if (!smallest_of_its_kind(7, edges)) continue;
    TinyCase c(dag(7, edges, 21), 22, edges);
    expect_equals_all(c, fmt::format("7 operators, edges {}", edges));
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace millrace::partitioners
