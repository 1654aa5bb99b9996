// The objective max_load by hand: what each device of a plan pays, what is refused, and the bound.
#include <gmock/gmock.h>

#include "base/errors.h"
#include "plan/published.h"
#include "plan/published/max_load.h"
#include "tests/partitioners/max_load/cases.h"

namespace millrace::plan {
namespace {

using testing_support::best_by_trying;
using testing_support::machine_of;
using testing_support::random_split;
using testing_support::Split;
using testing_support::SplitCase;

// n0 → n1, n2 → n3, two accelerators and a core; n0's output costs 10, n1's and n2's 100 and 1,000.
Split diamond() {
  Split split;
  split.model.ops = {{1, 11, 1, true, 1}, {2, 12, 2, true, 1}, {3, 13, 4, true, 1}, {4, 14, 8, true, 1}};
  split.edges = {{0, 1}, {0, 2}, {1, 3}, {2, 3}};
  split.model.transfers = {{0, {1, 2}, 10}, {1, {3}, 100}, {2, {3}, 1000}};
  split.model.accelerators = 2;
  split.model.cpus = 1;
  split.model.memory_bytes = 14;
  return split;
}

Plan placed(const std::vector<std::pair<int, std::vector<OpId>>>& stages) {
  Plan plan;
  plan.pipelines.emplace_back();
  for (const auto& [device, ops] : stages) {
    Stage& stage = plan.pipelines[0].stages.emplace_back();
    stage.ops = ops;
    stage.devices = {device};
    stage.shares = {1.0};
  }
  return plan;
}

TEST(MaxLoad, AProducerCountsOnceOnEachDeviceThatHoldsOrReadsIt) {
  const SplitCase c(diamond());
  const auto value = [&](const auto& stages) { return judge_max_load(placed(stages), c.problem).value; };
  using Stages = std::vector<std::pair<int, std::vector<OpId>>>;
  EXPECT_EQ(value(Stages{{0, {0, 1, 2, 3}}}), 10);             // nothing moves
  EXPECT_EQ(value(Stages{{0, {0}}, {1, {1, 2, 3}}}), 9 + 10);  // two readers on one device: once
  EXPECT_EQ(value(Stages{{0, {0, 1}}, {1, {2, 3}}}), 7 + 10 + 100);
  EXPECT_EQ(value(Stages{{0, {0, 1, 2}}, {1, {3}}}), 6 + 1100);
  EXPECT_EQ(value(Stages{{0, {0}}, {1, {1, 2}}, {0, {3}}}), 5 + 10 + 1100);  // stages of a device add up, each once
}

TEST(MaxLoad, ACorePaysItsOwnTimeOnly) {
  const SplitCase c(diamond());
  const Judgement judgement = judge_max_load(placed({{0, {0}}, {2, {1, 2, 3}}}), c.problem);
  EXPECT_EQ(judgement.value, 39);
  EXPECT_EQ(judgement.limiting_stage, 1);
  EXPECT_EQ(judgement.bottleneck, 39);
  EXPECT_EQ(judgement.memory_bytes, 1);  // of accelerators
  EXPECT_EQ(judgement.why_not, "");
  EXPECT_EQ(judge_max_load(placed({{2, {0, 1, 2}}, {1, {3}}}), c.problem).value, 1104);  // the accelerator reads
}

TEST(MaxLoad, MemoryAndSupportAreTheDevices) {
  SplitCase c(diamond());
  EXPECT_EQ(judge_max_load(placed({{0, {0, 1, 2, 3}}}), c.problem).why_not,
            "device 0 holds 15 B (15 bytes) and has 14 B");
  EXPECT_EQ(judge_max_load(placed({{0, {0, 1}}, {1, {2, 3}}}), c.problem).why_not, "");
  EXPECT_EQ(judge_max_load(placed({{2, {0, 1, 2, 3}}}), c.problem).why_not, "");  // a core has no limit
  c.problem.memory_limit = Bytes(11);
  EXPECT_EQ(judge_max_load(placed({{0, {0, 1}}, {1, {2, 3}}}), c.problem).why_not,
            "device 1 holds 12 B (12 bytes) and has 11 B");
  EXPECT_EQ(max_load_memory(c.problem, 0), 11);
  EXPECT_TRUE(std::isinf(max_load_memory(c.problem, 2)));

  Split split = diamond();
  split.model.ops[1].on_accelerator = false;
  const SplitCase unsupported(split);
  EXPECT_EQ(judge_max_load(placed({{0, {0, 1}}, {1, {2, 3}}}), unsupported.problem).why_not,
            "device 0 is an accelerator and holds n1, which only a CPU core can compute");
}

TEST(MaxLoad, ReplicasAreNoPartOfIt) {
  const SplitCase c(diamond());
  Plan plan = placed({{0, {0, 1}}, {2, {2, 3}}});
  plan.pipelines[0].stages[0].devices = {0, 1};
  EXPECT_EQ(judge_max_load(plan, c.problem).why_not, "stage 0 is on 2 devices; max_load places it on one");
  plan = placed({{0, {0, 1, 2, 3}}});
  plan.pipelines.push_back(plan.pipelines[0]);
  EXPECT_EQ(judge_max_load(plan, c.problem).why_not, "2 pipelines; max_load places the graph once");
}

TEST(MaxLoad, GraphsFromElsewhereAreRefused) {
  GraphBuilder builder("plain");
  builder.add_cost("n0", {}, {});
  const SplitCase c(builder.build(), machine_of(diamond().model));
  EXPECT_THAT(
      [&] {
        judge_max_load(placed({{0, {0}}}), c.problem);
      },
      testing::ThrowsMessage<InvalidInput>(testing::HasSubstr("only dnn-partitioning JSON files do")));
}

TEST(MaxLoadBound, SharesWorkOutByParts) {
  Split split;
  split.model.ops = {{6, 60, 0, true, 1}, {6, 12, 0, true, 1}};
  split.model.accelerators = 1;
  split.model.cpus = 1;
  // The second moves first, being cheap on the core: (12 − 6x) = 12x for x = 2/3.
  EXPECT_DOUBLE_EQ(bound_max_load(SplitCase(split).problem), 8);
  split.model.ops[1].on_accelerator = false;
  EXPECT_DOUBLE_EQ(bound_max_load(SplitCase(split).problem), 12);
  split.model.ops[1] = {0, 0, 0, true, 1};
  EXPECT_DOUBLE_EQ(bound_max_load(SplitCase(split).problem), 6);  // the largest operator
}

TEST(MaxLoadBound, NoAssignmentIsBelow) {
  int tight = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Split split = random_split(1 + static_cast<int>(seed % 6), seed);
    const double best = best_by_trying(split, false);
    const double bound = bound_max_load(SplitCase(split).problem);
    EXPECT_LE(bound, best * (1 + 1e-12)) << seed;
    tight += bound >= best * (1 - 1e-12) ? 1 : 0;
  }
  EXPECT_GT(tight, 20);
}

}  // namespace
}  // namespace millrace::plan
