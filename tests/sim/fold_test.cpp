// Folded jobs take the same time as unfolded ones, and stay apart only where ranks differ.
#include "sim/fold.h"

#include <algorithm>

#include <gmock/gmock.h>

#include "base/errors.h"
#include "sim/run.h"
#include "sim/sample_job.h"

namespace millrace::sim {
namespace {

using testing::ElementsAre;

Job unfolded(const SampleSize& size, int tensor, int data) {
  const SampleJob pipeline = sample_job(size);
  return grid(pipeline.job, tensor, data, pipeline.reach);
}

std::vector<std::int64_t> multiplicities(const Job& job) {
  std::vector<std::int64_t> out;
  for (const Rank& rank : job.ranks) out.push_back(rank.multiplicity);
  return out;
}

TEST(Fold, OneRankForEachStage) {
  const Job job = unfolded({}, 2, 3);
  ASSERT_EQ(job.ranks.size(), 24u);
  EXPECT_THAT(multiplicities(fold(job)), ElementsAre(6, 6, 6, 6));
  EXPECT_EQ(fold(job).devices(), 24);
}

TEST(Fold, TakesTheSameTimeOnEveryRank) {
  for (const Contention contention : {Contention::none, Contention::fixed, Contention::dynamic}) {
    for (const int micro_batches : {1, 3, 8}) {
      for (const double overlap : {1.0, 1.25}) {
        const Job job = unfolded({.micro_batches = micro_batches}, 2, 3);
        const Options options{.contention = contention, .overlap = overlap, .iterations = 2};
        std::vector<std::int32_t> class_of;
        const Outcome folded = run(fold(job, {}, &class_of), options);
        const Outcome all = run(job, options);
        EXPECT_EQ(folded.makespan, all.makespan);
        EXPECT_EQ(folded.iteration_time, all.iteration_time);
        for (std::size_t r = 0; r < job.ranks.size(); ++r) {
          const RankOutcome& one = folded.ranks[static_cast<std::size_t>(class_of[r])];
          EXPECT_EQ(one.end, all.ranks[r].end);
          EXPECT_EQ(one.busy, all.ranks[r].busy);
          EXPECT_EQ(one.exposed, all.ranks[r].exposed);
          EXPECT_EQ(one.transfer, all.ranks[r].transfer);
        }
      }
    }
  }
}

TEST(Fold, AStragglerUnfoldsItsPipelineAlone) {
  Job job = unfolded({}, 2, 5);
  slow_down(job, std::vector<Straggler>{{13, 2.0}});
  const Job folded = fold(job);
  // Its own class, its tensor neighbour, and so on along the pipeline of replica 1 (ranks 8 … 15): both shards of each
  // stage differ, one having the straggler behind it in its data group.
  EXPECT_LT(folded.ranks.size(), 24u);
  EXPECT_EQ(folded.devices(), 40);
  EXPECT_EQ(run(folded).makespan, run(job).makespan);
  EXPECT_GT(run(folded).makespan, run(unfolded({}, 2, 5)).makespan);
}

TEST(Fold, UnequalLinksUnfold) {
  Job job = unfolded({.collectives = 0}, 1, 4);
  job.edges[8].seconds_per_byte *= 4;
  const Job folded = fold(job);
  EXPECT_GT(folded.ranks.size(), 4u);
  EXPECT_EQ(run(folded).makespan, run(job).makespan);
}

TEST(Fold, FlowsThatShareAPortCountTogether) {
  // Four pipelines of two ranks, whose messages all leave through port 0 or, two pipelines each, through ports 0 and 1.
  for (const int ports : {1, 2}) {
    Job job = unfolded({.stages = 2, .micro_batches = 4, .collectives = 0, .hop = 1}, 1, 4);
    job.ports = ports;
    for (std::size_t e = 0; e < job.edges.size(); ++e) {
      job.edges[e].ports = {{static_cast<std::int32_t>(e / 2) % ports, 1.0}};
    }
    const Options options{.contention = Contention::dynamic};
    const Job folded = fold(job);
    EXPECT_THAT(multiplicities(folded), ElementsAre(4, 4));
    EXPECT_DOUBLE_EQ(run(folded, options).makespan.value(), run(job, options).makespan.value());
  }
}

TEST(Fold, NoiseOnSomeRanksLeavesTheOthersFolded) {
  const Job job = unfolded({.stages = 2}, 1, 16);
  Options options;
  options.noise = {.shape = Shape::lognormal, .spread = 0.2, .ranks = {6}};
  const Job folded = fold(job, options.noise.ranks);
  EXPECT_EQ(folded.ranks.size(), 4u);  // its pipeline, and the 15 others
  EXPECT_EQ(run(folded, options).makespan, run(job, options).makespan);
}

TEST(Fold, ExpectedNoiseIsCloseToTheMeanOfDraws) {
  const Job job = unfolded({.stages = 4, .micro_batches = 16}, 4, 8);
  const Job folded = fold(job);
  Options options;
  options.noise = {.shape = Shape::lognormal, .spread = 0.1};
  const double expected = run(folded, options).makespan.value();
  double mean = 0;
  constexpr int kSeeds = 8;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    options.noise.seed = static_cast<std::uint64_t>(seed);
    mean += run(job, options).makespan.value() / kSeeds;
  }
  EXPECT_NEAR(expected / mean, 1.0, 0.03);
  EXPECT_GT(mean, run(job).makespan.value() * 1.05);
}

TEST(Fold, RefusesStragglersThatDoNotExist) {
  Job job = unfolded({}, 1, 1);
  EXPECT_THAT(
      [&] {
        slow_down(job, std::vector<Straggler>{{4, 2.0}});
      },
      testing::ThrowsMessage<InvalidInput>(testing::HasSubstr("no rank 4")));
}

}  // namespace
}  // namespace millrace::sim
