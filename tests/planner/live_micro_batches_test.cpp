// Closed forms of what a schedule keeps, against its programs.
#include <algorithm>

#include <gmock/gmock.h>

#include "base/errors.h"
#include "plan/assignment.h"
#include "plan/closed_form.h"
#include "plan/evaluator.h"
#include "planner/order_costs.h"
#include "planner/program_memory.h"
#include "planner/simulated.h"
#include "program/lowering.h"
#include "schedules/placement.h"
#include "schedules/registry.h"
#include "sim/memory_profile.h"
#include "sim/simulate.h"
#include "tests/plan/table_cost.h"

namespace millrace::planner {
namespace {

using schedules::Placement;
using testing_support::Case;
using testing_support::chain;

// Stages of one and two operators in turn, so that they keep unequal bytes.
Plan grid_plan(const plan::Problem& problem, int p, int v) {
  std::vector<plan::StageCut> cuts(static_cast<std::size_t>(p * v));
  OpId op = 0;
  for (std::size_t s = 0; s < cuts.size(); ++s) {
    for (std::size_t i = 0; i <= s % 2; ++i) cuts[s].ops.push_back(op++);
  }
  plan::Problem wide = problem;
  const cluster::Cluster many = testing_support::machine(std::vector<double>(cuts.size(), 1.0));
  wide.cluster = &many;
  Plan plan = plan::assign(wide, 1, cuts);
  std::vector<schedules::Seat> seats;
  for (int place = 0; place < p; ++place) seats.push_back({{place}, {1.0}, 1});
  const Placement placement = schedules::by_name(problem.schedule).placement;
  plan.pipelines =
      schedules::place(plan.pipelines[0], seats, v > 1 && placement != Placement::vee ? Placement::in_turn : placement);
  if (problem.schedule == "zb-v" || problem.schedule == "zb-greedy") plan.schedule_options["moves"] = "0";
  return plan;
}

int operators(int stages) { return stages + stages / 2; }

struct Sizes {
  int m, p, v;
};

// What the schedule takes; \returns false where it refuses.
template <class Check>
bool on_grid_point(const std::string& schedule, const Sizes& at, const Check& check) {
  Case c(chain(operators(at.p * at.v)), std::vector<double>(static_cast<std::size_t>(at.p), 1.0),
         std::vector<double>(static_cast<std::size_t>(operators(at.p * at.v)), 1.0), 1, at.m);
  c.problem.schedule = schedule;
  try {
    const Plan plan = grid_plan(c.problem, at.p, at.v);
    const plan::PlanReport report = plan::ClosedFormEvaluator(c.problem).evaluate(plan);
    const Program program = lower(c.graph, plan, fitted_order(plan, c.problem), c.problem.batch);
    check(c, report, program);
  } catch (const InvalidInput&) {
    return false;
  }
  return true;
}

int chunks_of(const std::string& schedule) { return schedules::by_name(schedule).placement == Placement::vee ? 2 : 1; }

class EverySchedule : public testing::TestWithParam<std::string> {};

TEST_P(EverySchedule, KeepsNoMoreThanItsClosedFormSays) {
  int seen = 0, exact = 0;
  const bool in_turn = schedules::by_name(GetParam()).placement == Placement::in_turn;
  for (int v = chunks_of(GetParam()); v <= (in_turn ? 3 : chunks_of(GetParam())); ++v) {
    for (int p = 1; p <= 6; ++p) {
      for (int m = 1; m <= 9; ++m) {
        seen += on_grid_point(
            GetParam(), {m, p, v}, [&](const Case& c, const plan::PlanReport& report, const Program& program) {
              const plan::AnalyticBytes bytes(c.graph, c.problem.sizes);
              const ProgramMemory memory = program_memory(program, bytes);
              std::int64_t peak = 0;
              for (const plan::StageMemory& rank : memory.ranks) peak = std::max(peak, rank.total().value());
              const std::string what = "m=" + std::to_string(m) + " p=" + std::to_string(p) + " v=" + std::to_string(v);
              EXPECT_GE(report.peak_memory_bytes, peak) << what;
              exact += report.peak_memory_bytes == peak ? 1 : 0;
              for (std::size_t s = 0; GetParam() != "zb-v" && s < report.stages.size(); ++s) {
                EXPECT_GE(report.stages[s].live_micro_batches, memory.live_micro_batches[s]) << what << " s=" << s;
              }
            });
      }
    }
  }
  RecordProperty("exact", exact);
  EXPECT_GE(seen, 7);
  const bool bound_only = GetParam() == "zb-greedy" || GetParam() == "zb-v" || GetParam() == "chimera";
  if (!bound_only) {
    EXPECT_EQ(exact, seen);
  }
  if (GetParam() == "chimera" || GetParam() == "zb-v") {
    EXPECT_GE(2 * exact, seen);
  }
}

TEST_P(EverySchedule, ProgramMemoryIsThatOfTheSimulator) {
  const int v = chunks_of(GetParam());
  const bool taken =
      on_grid_point(GetParam(), {8, 4, v}, [&](const Case& c, const plan::PlanReport&, const Program& program) {
        const plan::AnalyticBytes bytes(c.graph, c.problem.sizes);
        const sim::Simulation run = sim::simulate(c.graph, program, costs_of(*c.problem.cost, *c.problem.cluster, 4));
        if (program.overlap > 0) return;  // its first iteration alone is not the steady state
        const auto profile = sim::memory_profile(program, run.timeline, [&](std::int32_t stage, int) {
          return bytes.footprint(program.stages[static_cast<std::size_t>(stage)].ops, 1);
        });
        const ProgramMemory memory = program_memory(program, bytes);
        for (std::size_t rank = 0; rank < profile.size(); ++rank) {
          Bytes most;
          for (const sim::MemorySample& sample : profile[rank]) most = std::max(most, sample.memory.activations);
          EXPECT_EQ(memory.ranks[rank].activations, most) << rank;
        }
      });
  EXPECT_TRUE(taken);
}

// No cut for so many stages keeps more than what partitioners hold against a limit.
TEST_P(EverySchedule, StagesByThemselvesKeepNoMore) {
  const plan::ScheduleTraits& traits = plan::schedule_traits(GetParam());
  const bool in_turn = schedules::by_name(GetParam()).placement == Placement::in_turn;
  for (int v = chunks_of(GetParam()); v <= (in_turn ? 3 : chunks_of(GetParam())) && GetParam() != "zb-v"; ++v) {
    for (int p = 1; p <= 6; ++p) {
      for (int m = 1; m <= 9; ++m) {
        on_grid_point(GetParam(), {m, p, v}, [&](const Case& c, const plan::PlanReport&, const Program& program) {
          const ProgramMemory memory = program_memory(program, plan::AnalyticBytes(c.graph, c.problem.sizes));
          for (std::size_t s = 0; s < memory.live_micro_batches.size(); ++s) {
            const std::int64_t stages = std::int64_t{p} * v, index = program.stages[s].ref.stage;
            const auto micro_batches = static_cast<std::int64_t>(program.stages[s].rows.size());
            EXPECT_GE(traits.live(micro_batches, stages - index, stages), memory.live_micro_batches[s])
                << "m=" << m << " p=" << p << " v=" << v << " s=" << s;
          }
        });
      }
    }
  }
}

Graph parameter_chain(int size) {
  GraphBuilder builder("weighted");
  TensorId x = builder.input("x", {Dims{4}});
  for (int i = 0; i < size; ++i) {
    x = builder.add({.name = fmt::format("n{}", i),
                     .kind = "linear",
                     .inputs = {x},
                     .attributes = {{"out_features", std::int64_t{4}}}});
  }
  return builder.build();
}

// Stages of one operator with parameters each, so that versions of the weights count.
TEST(KeptWeights, ClosedFormsCountTheVersionsThatProgramsKeep) {
  for (const std::string schedule : {"pipedream", "pipedream-2bw", "1f1b"}) {
    for (int p = 1; p <= 5; ++p) {
      const std::vector<double> ones(static_cast<std::size_t>(p), 1.0);
      for (int m = p; m <= 7; ++m) {
        Case c(parameter_chain(p), ones, ones, 1, m);
        c.problem.schedule = schedule;
        std::vector<plan::StageCut> cuts(static_cast<std::size_t>(p));
        for (int s = 0; s < p; ++s) cuts[static_cast<std::size_t>(s)].ops = {s};
        const Plan plan = plan::assign(c.problem, 1, cuts);
        const plan::PlanReport report = plan::ClosedFormEvaluator(c.problem).evaluate(plan);
        const Program program = lower(c.graph, plan, fitted_order(plan, c.problem), c.problem.batch);
        const ProgramMemory memory = program_memory(program, plan::AnalyticBytes(c.graph, c.problem.sizes));
        EXPECT_EQ(report.peak_memory_bytes, memory.peak()) << schedule << " p=" << p << " m=" << m;
        for (std::size_t s = 0; s < report.stages.size(); ++s) {
          EXPECT_EQ(report.stages[s].memory.weights, memory.stages[s].weights) << schedule << " p=" << p << " s=" << s;
        }
      }
    }
  }
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const schedules::Entry& entry : schedules::registry()) all.push_back(entry.name);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Registry, EverySchedule, testing::ValuesIn(names()), [](const auto& info) {
  std::string name = "schedule_" + info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(LiveMicroBatches, LimitsDoNotRefuseWhatFits) {
  // METHODS 2's counts: zb-h1 p, zb-h2 2p − 1, interleaved (2(p−1−s)+(v−1)p+1)/v, all less than m = 16.
  const auto live = [](const char* schedule, std::int64_t from_end, std::int64_t stages) {
    return plan::schedule_traits(schedule).live(16, from_end, stages);
  };
  EXPECT_EQ(live("zb-h1", 4, 4), 4);
  EXPECT_EQ(live("zb-h2", 4, 4), 7);
  EXPECT_EQ(live("zb-v", 8, 8), 4);
  EXPECT_EQ(plan::schedule_traits("zb-greedy").needed(16, 4, 4), 1);
  const plan::HeldStage chunk{16, 0, 8, Bytes(1)};
  plan::HeldStage other = chunk;
  other.index = 4;
  const std::vector<plan::HeldStage> first{chunk, other};
  EXPECT_EQ(plan::schedule_traits("interleaved").kept_together(first), Bytes(2 * 3 + 4 + 1));
}

// Two branches run beside each other: the stages before them have two behind them, not three (METHODS 2).
TEST(LiveMicroBatches, StagesOfADagAreCountedByDepth) {
  for (const schedules::Entry& entry : schedules::registry()) {
    if (entry.placement != Placement::one_stage || entry.name == "zb-greedy") continue;
    SCOPED_TRACE(entry.name);
    Case c(testing_support::branches(), {1, 1, 1, 1}, std::vector<double>(6, 1.0), 1, 8);
    c.problem.schedule = entry.name;
    c.problem.live_by_depth = true;
    const std::vector<plan::StageCut> cuts{{{0}}, {{1, 2}}, {{3, 4}}, {{5}}};
    const Plan plan = plan::assign(c.problem, 1, cuts);
    const ProgramMemory memory = program_memory(lower(c.graph, plan, fitted_order(plan, c.problem), c.problem.batch),
                                                plan::AnalyticBytes(c.graph, c.problem.sizes));
    const plan::PlanReport report = plan::ClosedFormEvaluator(c.problem).evaluate(plan);
    for (std::size_t s = 0; s < cuts.size(); ++s) {
      EXPECT_EQ(report.stages[s].live_micro_batches, memory.live_micro_batches[s]) << s;
    }
    c.problem.memory_limit = Bytes(memory.peak());
    EXPECT_TRUE(plan::ClosedFormEvaluator(c.problem).evaluate(plan).feasible);
    c.problem.memory_limit = Bytes(memory.peak() - 1);
    EXPECT_FALSE(plan::ClosedFormEvaluator(c.problem).evaluate(plan).feasible);
  }
}

TEST(LiveMicroBatches, ZbGreedyKeepsTheLimitThatItIsGiven) {
  Case c(chain(8), {1, 1, 1, 1}, std::vector<double>(8, 1.0), 1, 8);
  c.problem.schedule = "zb-greedy";
  std::vector<plan::StageCut> cuts(4);
  for (OpId op = 0; op < 8; ++op) cuts[static_cast<std::size_t>(op / 2)].ops.push_back(op);
  Plan plan = plan::assign(c.problem, 1, cuts);
  plan.schedule_options["moves"] = "0";
  const plan::AnalyticBytes bytes(c.graph, c.problem.sizes);
  const plan::StageFootprint one = bytes.footprint(plan.pipelines[0].stages[1].ops, 1);
  c.problem.memory_limit = plan::stage_memory(one, 2).total();
  const plan::PlanReport report = plan::ClosedFormEvaluator(c.problem).evaluate(plan);
  EXPECT_TRUE(report.feasible) << report.why_not;
  EXPECT_EQ(report.stages[1].live_micro_batches, 2);
  const Program program = lower(c.graph, plan, fitted_order(plan, c.problem), c.problem.batch);
  for (const plan::StageMemory& rank : program_memory(program, bytes).ranks) {
    EXPECT_LE(rank.total(), *c.problem.memory_limit);
  }
}

}  // namespace
}  // namespace millrace::planner
