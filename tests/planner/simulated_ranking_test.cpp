// The judge against simulating every candidate, and variants that closed forms do not know.
#include "planner/simulated_ranking.h"

#include <algorithm>
#include <map>

#include <gmock/gmock.h>

#include "base/random.h"
#include "planner/search.h"
#include "planner/simulated.h"
#include "program/lowering.h"
#include "program/stage_dag.h"
#include "schedules/registry.h"
#include "tests/plan/table_cost.h"

namespace millrace::planner {
namespace {

using testing_support::Case;
using testing_support::chain;

// `stages` stages of `replicas` devices each; cuts drawn from `seed`.
plan::Candidate candidate(const Case& c, int stages, int replicas, std::int64_t micro_batches, std::uint64_t seed,
                          const std::string& schedule = "1f1b") {
  const Random draw(seed, "cuts");
  std::vector<int> cuts;
  for (std::uint64_t i = 0; static_cast<int>(cuts.size()) < stages - 1; ++i) {
    const auto cut = 1 + static_cast<int>(draw.below(c.graph.size() - 1, i));
    if (std::find(cuts.begin(), cuts.end(), cut) == cuts.end()) cuts.push_back(cut);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.push_back(static_cast<int>(c.graph.size()));
  plan::Candidate made;
  made.plan.schedule = schedule;
  Pipeline& pipeline = made.plan.pipelines.emplace_back();
  pipeline.micro_batches = micro_batches;
  int op = 0, device = 0;
  for (const int cut : cuts) {
    Stage stage;
    for (; op < cut; ++op) stage.ops.push_back(op);
    for (int r = 0; r < replicas; ++r) {
      stage.devices.push_back(device++);
      stage.shares.push_back(1.0 / replicas);
    }
    pipeline.stages.push_back(std::move(stage));
  }
  plan::Problem problem = c.problem;
  problem.schedule = schedule;
  problem.micro_batches = micro_batches;
  made.report = closed_form(problem)->evaluate(made.plan);
  return made;
}

double simulated(const Case& c, const Plan& plan) {
  const Program program =
      lower(c.graph, plan, schedules::compute_order(plan, make_stage_dag(c.graph, plan)), c.problem.batch);
  const sim::SimCosts costs = costs_of(*c.problem.cost, *c.problem.cluster, 4);
  return sim::simulate(c.graph, program, costs).iteration_time.value();
}

std::vector<plan::Candidate> candidates(const Case& c) {
  std::vector<plan::Candidate> all;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    for (const std::int64_t m : {2, 5, 8}) all.push_back(candidate(c, 4, 2, m, seed, seed % 2 == 0 ? "gpipe" : "1f1b"));
  }
  return all;
}

// A rank sends and receives one message at a time, which the search for an order does not know.
TEST(SimulatedRanking, ZbGreedyIsNoWorseThanTheFixedOrdersUnderContention) {
  for (const bool half_duplex : {false, true}) {
    for (const int replicas : {1, 2}) {
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        const Case c(chain(12), std::vector<double>(static_cast<std::size_t>(4 * replicas), 1.0),
                     {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8}, 2 * replicas, 8, 1.5, 2);
        const SimulatedRanking settings{.options = {.contention = sim::Contention::fixed, .half_duplex = half_duplex},
                                        .deeper_warmup = false};
        std::map<std::string, double> times;
        for (const std::string schedule : {"zb-greedy", "zb-h1", "zb-h2"}) {
          std::vector<plan::Candidate> one{candidate(c, 4, replicas, 8, seed, schedule)};
          if (schedule == "zb-greedy") one[0].plan.schedule_options["moves"] = "500";
          rank_by_simulation(c.problem, one, settings);
          ASSERT_TRUE(one[0].report.feasible) << one[0].report.why_not;
          times[schedule] = one[0].report.iteration_time_s;
        }
        EXPECT_LE(times["zb-greedy"], times["zb-h1"]);
        EXPECT_LE(times["zb-greedy"], times["zb-h2"]);
      }
    }
  }
}

TEST(SimulatedRanking, FindsWhatSimulatingEverythingFinds) {
  const Case c(chain(12), std::vector<double>(8, 1.0), {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8}, 16);
  std::vector<plan::Candidate> ranked = candidates(c);
  double best = 1e300;
  for (const plan::Candidate& one : ranked) {
    const double time = simulated(c, one.plan);
    EXPECT_LE(least_iteration_time(one).value(), time * (1 + 1e-12));
    best = std::min(best, time);
  }
  const std::size_t all = ranked.size();
  const SimulatedCounts counts = rank_by_simulation(c.problem, ranked, {.deeper_warmup = false});
  ASSERT_EQ(ranked.size(), all);
  EXPECT_DOUBLE_EQ(ranked.front().report.iteration_time_s, best);
  EXPECT_DOUBLE_EQ(simulated(c, ranked.front().plan), best);
  EXPECT_GT(counts.pruned, 0u);
  EXPECT_EQ(counts.simulated + counts.pruned, all);
}

TEST(SimulatedRanking, DeeperWarmupHidesHops) {
  // METHODS 2, fact 2: p = 4, m = 16, tF = 1, tB = 2 and hops of 0.5: 71 becomes 60 with twice the warm-up.
  const Case c(chain(4), {1, 1, 1, 1}, {3, 3, 3, 3}, 1, 16, 0.5);
  std::vector<plan::Candidate> one{candidate(c, 4, 1, 16, 1)};
  rank_by_simulation(c.problem, one, {});
  EXPECT_DOUBLE_EQ(one[0].report.iteration_time_s, 60);
  EXPECT_EQ(one[0].plan.pipelines[0].warmup, (std::vector<int>{6, 4, 2, 0}));
}

TEST(SimulatedRanking, DeeperWarmupKeepsTheMemoryLimit) {
  Case c(chain(4), {1, 1, 1, 1}, {3, 3, 3, 3}, 1, 16, 0.5);
  std::vector<plan::Candidate> one{candidate(c, 4, 1, 16, 1)};
  c.problem.memory_limit = Bytes(one[0].report.peak_memory_bytes);
  rank_by_simulation(c.problem, one, {});
  EXPECT_DOUBLE_EQ(one[0].report.iteration_time_s, 71);
  EXPECT_TRUE(one[0].plan.pipelines[0].warmup.empty());
}

TEST(SimulatedRanking, AnyNumberOfThreadsGivesTheSameRanking) {
  const Case c(chain(12), std::vector<double>(8, 1.0), {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8}, 16);
  std::vector<plan::Candidate> alone = candidates(c);
  const SimulatedCounts one = rank_by_simulation(c.problem, alone, {.threads = 1});
  for (const std::size_t threads : {2U, 5U, 64U}) {
    std::vector<plan::Candidate> ranked = candidates(c);
    const SimulatedCounts counts = rank_by_simulation(c.problem, ranked, {.threads = threads});
    EXPECT_EQ(counts.simulated, one.simulated);
    EXPECT_EQ(counts.reused, one.reused);
    EXPECT_EQ(counts.pruned, one.pruned);
    EXPECT_EQ(counts.choices, one.choices);
    ASSERT_EQ(ranked.size(), alone.size());
    for (std::size_t i = 0; i < ranked.size(); ++i) {
      EXPECT_EQ(ranked[i].plan, alone[i].plan) << i;
      EXPECT_EQ(ranked[i].report.iteration_time_s, alone[i].report.iteration_time_s) << i;
    }
  }
}

TEST(SimulatedRanking, EqualProgramsAreSimulatedOnce) {
  const Case c(chain(12), std::vector<double>(8, 1.0), {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8}, 16);
  // The same plan, the second time under the name of a schedule that can follow the order of the first.
  std::vector<plan::Candidate> two{candidate(c, 4, 2, 5, 1, "1f1b"), candidate(c, 4, 2, 5, 1, "hippie")};
  two[1].plan.schedule_options["base"] = "1f1b";
  const SimulatedCounts equal = rank_by_simulation(c.problem, two, {.deeper_warmup = false});
  EXPECT_EQ(equal.simulated, 2U);
  EXPECT_EQ(equal.reused, 1U);
  EXPECT_EQ(two[0].report.iteration_time_s, two[1].report.iteration_time_s);
  // Another cut, count, or order is another program.
  two = {candidate(c, 4, 2, 5, 1, "1f1b"), candidate(c, 4, 2, 5, 2, "1f1b"), candidate(c, 4, 2, 4, 1, "1f1b"),
         candidate(c, 4, 2, 5, 1, "gpipe")};
  EXPECT_EQ(rank_by_simulation(c.problem, two, {.deeper_warmup = false, .threads = 2}).reused, 0U);
}

TEST(SimulatedRanking, LeavesOtherObjectivesAlone) {
  Case c(chain(4), {1, 1}, {1, 2, 3, 4}, 8);
  c.problem.objective = plan::Objective::communication;
  std::vector<plan::Candidate> two{candidate(c, 2, 1, 2, 1), candidate(c, 2, 1, 4, 1)};
  const double before = two[0].report.iteration_time_s;
  EXPECT_EQ(rank_by_simulation(c.problem, two, {}).simulated, 0u);
  EXPECT_EQ(two[0].report.iteration_time_s, before);
}

}  // namespace
}  // namespace millrace::planner
