// Chromosomes and islands: what they keep, and that the ranks do not show in the plan.
#include "partitioners/common/islands/archipelago.h"

#include <thread>

#include <gmock/gmock.h>

#include "tests/partitioners/division_case.h"
#include "tests/partitioners/random_graphs.h"

namespace millrace::partitioners::islands {
namespace {

using testing_support::DivisionCase;
using testing_support::random_graph;
using testing_support::ThreadRanks;

constexpr fm::Effort kEffort{};

Individual individual(const DivisionCase& setting, std::uint64_t seed, bool improve) {
  fm::Division division{setting.random_division(seed), {}};
  if (improve) {
    division = fm::improved(setting.task(), division.stage_of, {1, 4}, fm::Deadline::max());
  } else {
    division.value = fm::Labels(setting.model(), division.stage_of).value();
  }
  fm::Draws draws(seed, "keys");
  return encode(setting.task(), std::move(division), fm::random_keys(setting.netlist.nodes(), draws));
}

TEST(Chromosome, DecodesToTheDivisionThatItEncodes) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const DivisionCase setting(random_graph(40, seed, 12), {1, 4, 4});
    const Individual one = individual(setting, seed, true);
    EXPECT_EQ(fm::divided(fm::decode(setting.edges, one.keys), one.ends), one.stage_of);
    const Individual read = from_text(to_text(one));
    EXPECT_EQ(read.keys, one.keys);
    EXPECT_EQ(read.ends, one.ends);
    EXPECT_EQ(read.stage_of, one.stage_of);
    EXPECT_EQ(read.value, one.value);
    EXPECT_EQ(to_text(one).find('\n'), std::string::npos);
  }
}

TEST(Chromosome, ChildrenAreDivisionsAndCombinedOnesAreNeverWorseThanTheBetterParent) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const DivisionCase setting(random_graph(40, seed, seed % 2 == 0 ? 4 : 15), {1, 4, 4}, seed % 3 == 0, 0.01);
    const Individual a = individual(setting, seed, seed % 4 < 2), b = individual(setting, seed + 1000, true);
    const Individual combined = combined_child(setting.task(), a, b, kEffort, fm::Deadline::max());
    EXPECT_LE(combined.value, std::min(a.value, b.value));
    EXPECT_TRUE(setting.in_order(combined.stage_of));
    EXPECT_EQ(combined.value, fm::Labels(setting.model(), combined.stage_of).value());
    // With no time left for local search the better parent itself comes back.
    EXPECT_EQ(combined_child(setting.task(), a, b, kEffort, fm::Deadline::min()).stage_of, std::min(a, b).stage_of);
    fm::Draws draws(seed, "uniform");
    const Individual mixed = uniform_child(setting.task(), a, b, draws, kEffort, fm::Deadline::max());
    EXPECT_TRUE(setting.in_order(mixed.stage_of));
  }
}

fm::Found search_on(const DivisionCase& setting, const Settings& settings, int ranks) {
  ThreadRanks job(ranks);
  std::vector<fm::Found> found(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadRanks::Member exchange(job, rank);
      found[static_cast<std::size_t>(rank)] = search(setting.task(), settings, fm::Deadline::max(), &exchange);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const fm::Found& other : found) {
    EXPECT_EQ(other.divisions.size(), found[0].divisions.size());
    EXPECT_EQ(other.divisions[0].stage_of, found[0].divisions[0].stage_of);
  }
  return found[0];
}

TEST(Islands, TheSameSeedGivesTheSamePlanOnAnyNumberOfRanks) {
  for (const std::uint64_t seed : {1, 2}) {
    DivisionCase setting(random_graph(40, seed, 12), {1, 4, 4});
    setting.problem.seed = seed;
    for (const Settings& settings : {Settings{20, 8, 6, 3}, Settings{7, 3, 4, 1}}) {
      const fm::Found alone = search(setting.task(), settings, fm::Deadline::max(), nullptr);
      EXPECT_FALSE(alone.stopped);
      for (const int ranks : {1, 2, 3, 9}) {
        const fm::Found shared = search_on(setting, settings, ranks);
        ASSERT_EQ(shared.divisions.size(), alone.divisions.size());
        for (std::size_t i = 0; i < alone.divisions.size(); ++i) {
          EXPECT_EQ(shared.divisions[i].stage_of, alone.divisions[i].stage_of);
          EXPECT_EQ(shared.divisions[i].value, alone.divisions[i].value);
        }
      }
    }
  }
}

TEST(Islands, RanksAgreeToStopWhenOneOfThemIsLate) {
  const DivisionCase setting(random_graph(60, 1, 20), {1, 4, 4});
  ThreadRanks job(3);
  std::vector<fm::Found> found(3);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadRanks::Member exchange(job, rank);
      const fm::Deadline deadline = rank == 1 ? fm::Deadline::min() : fm::Deadline::max();
      found[static_cast<std::size_t>(rank)] = search(setting.task(), {}, deadline, &exchange);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const fm::Found& one : found) {
    EXPECT_TRUE(one.stopped);
    EXPECT_EQ(one.divisions[0].stage_of, found[0].divisions[0].stage_of);
  }
}

TEST(Islands, MoreGenerationsAreNeverWorse) {
  const DivisionCase setting(random_graph(50, 3, 15), {1, 4, 4});
  const auto value = [&](int generations) {
    return search(setting.task(), {16, 4, generations, 2}, fm::Deadline::max(), nullptr).divisions[0].value;
  };
  EXPECT_LE(value(8), value(2));
  EXPECT_LE(value(2),
            fm::improved(setting.task(),
                         fm::divided(setting.orders[0], fm::equal_time_ends(*setting.machine, setting.orders[0])),
                         kEffort, fm::Deadline::max())
                .value);
}

}  // namespace
}  // namespace millrace::partitioners::islands
