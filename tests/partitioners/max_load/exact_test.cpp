// exact and dp for max_load against trying everything on small random models, and their behaviour on large ones.
#include <gmock/gmock.h>

#include "partitioners/common/max_load/exact.h"
#include "partitioners/common/max_load/linear.h"
#include "plan/objective.h"
#include "plan/published.h"
#include "plan/validate.h"
#include "tests/partitioners/max_load/cases.h"
#include "tests/partitioners/no_deadline.h"

namespace millrace::partitioners {
namespace {

using testing_support::best_by_trying;
using testing_support::graph_of;
using testing_support::machine_of;
using testing_support::random_split;
using testing_support::Split;
using testing_support::SplitCase;

plan::PlanSet exact(const SplitCase& c, std::chrono::steady_clock::time_point deadline = kNoDeadline) {
  plan::ClosedFormEvaluator evaluate(c.problem);
  return max_load_exact(c.problem, deadline, evaluate);
}

plan::PlanSet linear(const SplitCase& c, std::chrono::steady_clock::time_point deadline = kNoDeadline) {
  plan::ClosedFormEvaluator evaluate(c.problem);
  return max_load_linear(c.problem, deadline, evaluate);
}

void expect_sound(const SplitCase& c, const plan::Candidate& candidate) {
  ASSERT_TRUE(candidate.report.objective_value && candidate.report.bound);
  for (const auto& violation : plan::validate(candidate.plan, c.graph, {})) ADD_FAILURE() << violation.text;
  EXPECT_EQ(plan::judge(candidate.plan, c.problem).value, *candidate.report.objective_value);
  EXPECT_EQ(candidate.report.feasible, candidate.report.why_not.empty());
  if (candidate.report.feasible) {
    EXPECT_LE(*candidate.report.bound, *candidate.report.objective_value * (1 + 1e-9));
  }
}

TEST(MaxLoadExact, IsTheBestOfAllChainsOfConvexStages) {
  int without_plan = 0, binding_memory = 0, with_cores = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Split split = random_split(1 + static_cast<int>(seed % 7), seed);
    const double best = best_by_trying(split, true);
    const SplitCase c(split);
    const plan::PlanSet plans = exact(c);
    SCOPED_TRACE(seed);
    if (best == std::numeric_limits<double>::infinity()) {
      EXPECT_FALSE(plans.feasible());
      EXPECT_FALSE(plans.candidates().empty() && plans.refusals().empty());
      ++without_plan;
      continue;
    }
    ASSERT_TRUE(plans.feasible());
    const plan::Candidate& answer = plans.best(c.problem.objective);
    expect_sound(c, answer);
    EXPECT_DOUBLE_EQ(*answer.report.objective_value, best);
    EXPECT_DOUBLE_EQ(*answer.report.bound, best);
    EXPECT_EQ(answer.report.partitioner, "exact");
    EXPECT_EQ(answer.report.stopped_by, "complete");
    double bytes = 0;
    for (const SplitModel::Op& op : split.model.ops) bytes += op.bytes;
    binding_memory += bytes > split.model.memory_bytes ? 1 : 0;
    for (const Stage& stage : answer.plan.pipelines[0].stages) {
      with_cores += c.cluster.device(stage.devices[0]).name == "cpu" ? 1 : 0;
    }
  }
  EXPECT_GT(without_plan, 5);
  EXPECT_GT(binding_memory, 20);
  EXPECT_GT(with_cores, 50);
}

// Ideals of a model of up to 20 operators by dynamic program, without any bound or dominance.
double best_over_ideals(const Split& split) {
  const SplitModel& model = split.model;
  const auto ops = static_cast<OpId>(model.ops.size());
  std::vector<std::uint32_t> before(model.ops.size(), 0), ideals;
  for (const auto& [from, to] : split.edges) before[static_cast<std::size_t>(to)] |= 1U << from;
  for (std::uint32_t set = 0; set < 1U << ops; ++set) {
    bool closed = true;
    for (OpId op = 0; op < ops; ++op) {
      closed = closed && ((set >> op & 1U) == 0 || (before[static_cast<std::size_t>(op)] & ~set) == 0);
    }
    if (closed) ideals.push_back(set);
  }
  const auto cores = static_cast<std::size_t>(model.cpus) + 1,
             states = cores * (static_cast<std::size_t>(model.accelerators) + 1);
  std::vector<std::vector<double>> best(ideals.size(),
                                        std::vector<double>(states, std::numeric_limits<double>::infinity()));
  best[0][0] = 0;
  for (std::size_t i = 0; i < ideals.size(); ++i) {
    for (std::size_t j = i + 1; j < ideals.size(); ++j) {
      if ((ideals[i] & ~ideals[j]) != 0) continue;
      const double accelerator = testing_support::load_of(model, ideals[j] & ~ideals[i], false);
      const double core = testing_support::load_of(model, ideals[j] & ~ideals[i], true);
      for (std::size_t s = 0; s < states; ++s) {
        if (s + cores < states) best[j][s + cores] = std::min(best[j][s + cores], std::max(best[i][s], accelerator));
        if (s % cores + 1 < cores) best[j][s + 1] = std::min(best[j][s + 1], std::max(best[i][s], core));
      }
    }
  }
  return *std::min_element(best.back().begin(), best.back().end());
}

TEST(MaxLoadExact, EqualsThePlainProgramOverIdeals) {
  for (std::uint64_t seed = 1000; seed < 1060; ++seed) {
    const Split split = random_split(10, seed);
    const double best = best_over_ideals(split);
    const SplitCase c(split);
    const plan::PlanSet plans = exact(c);
    SCOPED_TRACE(seed);
    ASSERT_EQ(plans.feasible(), best < std::numeric_limits<double>::infinity());
    if (plans.feasible()) {
      EXPECT_DOUBLE_EQ(*plans.best(c.problem.objective).report.objective_value, best);
    }
  }
}

TEST(MaxLoadLinear, IsNeverBelowTheOptimumAndReachesItOnChains) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Split split = random_split(1 + static_cast<int>(seed % 7), seed);
    const bool chain = seed % 2 == 0;
    if (chain) split.edges = testing_support::chain_edges(split.model.ops.size());
    const double best = best_by_trying(split, true);
    const SplitCase c(split);
    const plan::PlanSet plans = linear(c);
    SCOPED_TRACE(seed);
    if (!plans.feasible()) {
      EXPECT_TRUE(!chain || best == std::numeric_limits<double>::infinity());
      continue;
    }
    const plan::Candidate& answer = plans.best(c.problem.objective);
    expect_sound(c, answer);
    EXPECT_EQ(answer.report.partitioner, "dp");
    EXPECT_GE(*answer.report.objective_value, best * (1 - 1e-12));
    if (chain) {
      EXPECT_DOUBLE_EQ(*answer.report.objective_value, best);
    }
  }
}

TEST(MaxLoadExact, SaysWhatIsMissingWhereNothingFits) {
  Split split;
  split.model.ops.assign(4, {1.0, 1.0, 10.0, true, 1});
  split.model.accelerators = 2;
  split.model.memory_bytes = 15;
  for (const plan::PlanSet& plans : {exact(SplitCase(split)), linear(SplitCase(split))}) {
    ASSERT_EQ(plans.candidates().size(), 1U);
    const plan::PlanReport& report = plans.candidates()[0].report;
    EXPECT_FALSE(report.feasible);
    EXPECT_EQ(report.why_not, "device 0 holds 20 B (20 bytes) and has 15 B");
    EXPECT_EQ(report.peak_memory_bytes, 20);
  }
}

TEST(MaxLoadExact, SaysThatACoreIsMissing) {
  Split split;
  split.model.ops.assign(2, {1.0, 1.0, 0.0, true, 1});
  split.model.ops[1].on_accelerator = false;
  split.model.accelerators = 2;
  for (const plan::PlanSet& plans : {exact(SplitCase(split)), linear(SplitCase(split))}) {
    EXPECT_TRUE(plans.candidates().empty());
    ASSERT_EQ(plans.refusals().size(), 1U);
    EXPECT_EQ(plans.refusals()[0].reason, plan::Refusal::not_offered);
    EXPECT_EQ(plans.refusals()[0].detail, "1 operators need a CPU core, and the machine has none");
  }
}

TEST(MaxLoadExact, RefusesShapesThatItDoesNotKnow) {
  SplitCase c(random_split(5, 3));
  c.problem.stages = 2;
  EXPECT_EQ(exact(c).refusals().at(0).reason, plan::Refusal::not_offered);
  c.problem.stages.reset();
  c.problem.pipelines = 2;
  EXPECT_EQ(linear(c).refusals().at(0).reason, plan::Refusal::not_offered);
}

TEST(MaxLoadExact, TellsAcceleratorsOfUnequalMemoryApart) {
  // 9 bytes fit on device 1 only; alone the others would be 1 + 1 | 5, but the order asks for n0 first.
  Split split;
  split.model.ops = {{3, 0, 9, true, 1}, {2, 0, 1, true, 1}, {2, 0, 1, true, 1}};
  split.edges = {{0, 1}, {1, 2}};
  split.model.accelerators = 2;
  split.model.memory_bytes = 5;
  std::vector<cluster::Device> devices = machine_of(split.model).devices();
  devices[1].memory = Bytes(9);
  const SplitCase c(graph_of(split), cluster::Cluster("unequal", cluster::Kind::described, std::move(devices), {0, 0},
                                                      {cluster::Node{"host"}}, {}));
  for (const plan::PlanSet& plans : {exact(c), linear(c)}) {
    ASSERT_TRUE(plans.feasible());
    const plan::Candidate& answer = plans.best(c.problem.objective);
    EXPECT_EQ(*answer.report.objective_value, 4);
    ASSERT_EQ(answer.plan.pipelines[0].stages.size(), 2U);
    EXPECT_EQ(answer.plan.pipelines[0].stages[0].devices, std::vector<int>{1});
  }
}

TEST(MaxLoadExact, IsDeterministic) {
  const SplitCase c(random_split(9, 77));
  const plan::PlanSet first = exact(c), second = exact(c);
  ASSERT_EQ(first.candidates().size(), second.candidates().size());
  EXPECT_EQ(first.candidates().at(0).plan, second.candidates().at(0).plan);
}

TEST(MaxLoadExact, AnswersWhatItKnowsWhenTimeIsUp) {
  const SplitCase c(testing_support::wide_split(60, 12));
  const plan::PlanSet plans = exact(c, std::chrono::steady_clock::now() + std::chrono::milliseconds(300));
  ASSERT_TRUE(plans.feasible());
  const plan::Candidate& answer = plans.best(c.problem.objective);
  expect_sound(c, answer);
  EXPECT_EQ(answer.report.stopped_by, "time");
  EXPECT_GT(*answer.report.optimality_gap, 0);
  EXPECT_GT(*answer.report.bound, plan::bound_max_load(c.problem) * (1 - 1e-9));
  const plan::PlanSet at_once = exact(c, std::chrono::steady_clock::now());
  EXPECT_TRUE(at_once.candidates().empty() || at_once.candidates()[0].report.stopped_by == "time");
}

}  // namespace
}  // namespace millrace::partitioners
