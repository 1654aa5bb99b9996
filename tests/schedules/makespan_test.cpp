// The exact makespans, bubbles and peaks of METHODS 2, in whole units of time.
#include <gmock/gmock.h>

#include "schedules/registry.h"
#include "tests/program/networks.h"
#include "tests/schedules/reference_run.h"

namespace millrace::test {
namespace {

using schedules::Placement;
using testing::Each;
using testing::ElementsAre;

struct Pipe {
  std::string schedule = "1f1b";
  int p = 4;
  int m = 8;
  UnitTimes times{};
  int v = 1;
  std::map<std::string, std::string> options{};
  std::vector<int> warmup{};
};

ReferenceRun run(const Pipe& pipe) {
  const Placement placement = schedules::by_name(pipe.schedule).placement;
  const int stages = pipe.p * (placement == Placement::vee ? 2 : pipe.v);
  const Graph graph = chain(stages - 1);
  Plan plan = make_plan(graph,
                        {{.replicas = std::vector<int>(static_cast<std::size_t>(stages), 1),
                          .micro_batches = pipe.m,
                          .warmup = pipe.warmup}},
                        pipe.schedule);
  plan = placed(plan, pipe.p, placement);
  plan.schedule_options = pipe.options;
  const StageDag dag = make_stage_dag(graph, plan);
  StageCosts costs;
  const std::size_t count = dag.successors.size();
  costs.forward.assign(count, Seconds(static_cast<double>(pipe.times.forward)));
  costs.backward.assign(count, Seconds(static_cast<double>(pipe.times.backward_input + pipe.times.backward_weight)));
  costs.backward_weight.assign(count, Seconds(static_cast<double>(pipe.times.backward_weight)));
  costs.hop.assign(count, Seconds(static_cast<double>(pipe.times.hop)));
  ReferenceRun result = reference_run(plan, dag, schedules::compute_order(plan, dag, costs), pipe.times);
  EXPECT_TRUE(result.ends) << pipe.schedule;
  return result;
}

// tF = 4, tB = 8, over v chunks.
UnitTimes chunk(int v) { return {4 / v, 4 / v, 4 / v, 0}; }

TEST(Makespan, OfFlushingSchedules) {
  for (const Pipe& pipe :
       {Pipe{"gpipe"}, Pipe{"1f1b"}, Pipe{"hippie"}, Pipe{.schedule = "hippie", .options = {{"base", "1f1b"}}}}) {
    for (const auto& [p, m] : {std::pair{4, 8}, {8, 16}, {8, 32}, {3, 1}, {4, 3}, {1, 5}}) {
      Pipe sized = pipe;
      sized.p = p;
      sized.m = m;
      EXPECT_EQ(run(sized).makespan, (m + p - 1) * 12) << pipe.schedule << " p=" << p << " m=" << m;
    }
  }
  EXPECT_EQ(run({"1f1b", 8, 32}).makespan, 468);
  EXPECT_NEAR(static_cast<double>(run({"1f1b", 8, 32}).idle[0]) / 468, 0.1795, 0.00005);
}

TEST(Makespan, OfInterleavedChunks) {
  EXPECT_EQ(run({"interleaved", 4, 8, chunk(2), 2}).makespan, 114);
  EXPECT_EQ(run({"interleaved", 4, 8, chunk(4), 4}).makespan, 105);
  EXPECT_EQ(run({"interleaved", 8, 16, chunk(2), 2}).makespan, 234);
  EXPECT_EQ(run({"interleaved", 8, 16, chunk(4), 4}).makespan, 213);
}

TEST(Makespan, OfZeroBubbleSchedules) {
  const UnitTimes one{1, 1, 1, 0};
  EXPECT_EQ(run({"zb-h1", 4, 8, one}).makespan, 27);
  EXPECT_THAT(run({"zb-h1", 4, 8, one}).spans, ElementsAre(27, 26, 25, 24));
  EXPECT_THAT(run({"zb-h2", 4, 8, one}).spans, Each(24));
  // Idle (p − 1)(tF + tB − tW) for tW ≤ tB and m ≥ p.
  EXPECT_THAT(run({"zb-h1", 4, 8, {4, 5, 3, 0}}).idle, Each(3 * (4 + 5 - 3)));
  EXPECT_THAT(run({"zb-h1", 6, 9, {4, 4, 4, 0}}).idle, Each(5 * 4));
  for (const int p : {1, 2, 3, 5, 8}) {
    EXPECT_THAT(run({"zb-h2", p, 2 * p, one}).spans, Each(3 * 2 * p)) << p;
    EXPECT_THAT(run({"zb-h2", p, 2 * p + 3, one}).spans, Each(3 * (2 * p + 3))) << p;
  }
}

TEST(Makespan, OfTheV) {
  // No bubble within a device's span where F = B = W and m ≥ 2p, at the memory of p whole stages.
  const UnitTimes one{1, 1, 1, 0};
  for (const int p : {1, 2, 3, 4, 6}) {
    const ReferenceRun v = run({"zb-v", p, 2 * p, one});
    EXPECT_THAT(v.spans, Each(6 * 2 * p)) << p;
    EXPECT_THAT(v.peaks, Each(testing::Le(2 * p))) << "chunks, each half of a stage";
  }
}

TEST(Makespan, OfChimera) {
  const UnitTimes equal{1, 1, 0, 0};  // tB = tF
  const UnitTimes twice{1, 1, 1, 0};  // tB = 2 tF
  EXPECT_EQ(run({"chimera", 4, 4, equal}).makespan, 10);
  EXPECT_EQ(run({"chimera", 8, 8, equal}).makespan, 22);
  EXPECT_EQ(run({"chimera", 4, 4, twice}).makespan, 16);
  EXPECT_EQ(run({"chimera", 8, 8, twice}).makespan, 36);
  EXPECT_EQ(run({"chimera", 4, 8, equal}).makespan, 18);
  EXPECT_EQ(run({"chimera", 8, 16, equal}).makespan, 38);
  for (const int p : {2, 4, 6, 8}) {
    const ReferenceRun both = run({"chimera", p, p, equal});
    EXPECT_EQ(both.makespan, 2 * p + p - 2) << p;  // bubble (p − 2) / (2m + p − 2)
    EXPECT_THAT(both.peaks, Each(testing::AllOf(testing::Ge(p / 2 + 1), testing::Le(p)))) << p;
  }
}

TEST(Peaks, OfTheTable) {
  EXPECT_THAT(run({"gpipe"}).peaks, ElementsAre(8, 8, 8, 8));
  EXPECT_THAT(run({"1f1b"}).peaks, ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(run({"1f1b", 4, 2}).peaks, ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(run({"hippie"}).peaks, ElementsAre(8, 8, 8, 1));
  EXPECT_THAT(run({.schedule = "hippie", .options = {{"base", "1f1b"}}}).peaks, ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(run({"zb-h1"}).peaks, Each(4));
  EXPECT_THAT(run({"zb-h2"}).peaks, Each(7));
  for (const int v : {2, 3}) {
    const ReferenceRun chunks = run({"interleaved", 4, 8, chunk(1), v});
    for (int s = 0; s < 4; ++s) {
      EXPECT_EQ(chunks.peaks[static_cast<std::size_t>(s)], std::min(8 * v, 2 * (3 - s) + (v - 1) * 4 + 1)) << s;
    }
    EXPECT_THAT(run({"interleaved", 4, 4, chunk(1), v}).peaks, Each(4 * v));
  }
}

TEST(Warmup, DeeperHidesTheHop) {
  // METHODS 2, measured fact 2, in halves: p = 4, m = 16, hop 0.5.
  const UnitTimes halves{2, 2, 2, 1};
  EXPECT_EQ(run({.p = 4, .m = 16, .times = {2, 2, 2, 0}}).makespan, 2 * 57);
  EXPECT_EQ(run({.p = 4, .m = 16, .times = halves}).makespan, 2 * 71);
  EXPECT_EQ(run({.p = 4, .m = 16, .times = halves, .warmup = {6, 4, 2, 0}}).makespan, 2 * 60);
  EXPECT_LT(run({.schedule = "zb-h1", .p = 4, .m = 16, .times = halves, .warmup = {6, 4, 2, 0}}).makespan,
            run({.schedule = "zb-h1", .p = 4, .m = 16, .times = halves}).makespan);
}

TEST(Greedy, IsNotWorseThanTheFixedOrdersAtTheirMemory) {
  for (const int p : {2, 4, 6}) {
    for (const UnitTimes& times : {UnitTimes{1, 1, 1, 0}, UnitTimes{4, 5, 3, 1}, UnitTimes{3, 4, 2, 2}}) {
      const std::int64_t greedy = run({"zb-greedy", p, 2 * p, times, 1, {{"moves", "2000"}}}).longest_span();
      EXPECT_LE(greedy, run({"zb-h2", p, 2 * p, times}).longest_span()) << p;
      EXPECT_GE(greedy, 2 * p * (times.forward + times.backward_input + times.backward_weight));
    }
  }
}

}  // namespace
}  // namespace millrace::test
