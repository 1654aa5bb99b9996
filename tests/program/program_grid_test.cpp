// Every schedule on every grid of stages, micro-batches, chunks, replicas and pipelines gives a program that verifies.
#include <gmock/gmock.h>

#include "base/errors.h"
#include "program/lowering.h"
#include "program/verifier.h"
#include "schedules/registry.h"
#include "tests/program/networks.h"
#include "tests/program/symbolic_run.h"

namespace millrace::test {
namespace {

std::string words(const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& problem : problems) text += problem.text + "\n";
  return text;
}

void expect_verified(const Graph& graph, const Plan& plan, std::int64_t batch, const std::string& what) {
  const Program program = make_program(graph, plan, batch);
  const std::vector<Problem> problems = verify(graph, program);
  EXPECT_TRUE(problems.empty()) << what << "\n" << words(problems);
  EXPECT_TRUE(symbolic_run(graph, program).has_value()) << what;
  const Program evaluation = lower_evaluation(graph, plan, batch);
  const std::vector<Problem> more = verify(graph, evaluation);
  EXPECT_TRUE(more.empty()) << what << " (evaluation)\n" << words(more);
  EXPECT_TRUE(symbolic_run(graph, evaluation).has_value()) << what << " (evaluation)";
  for (const ProgramStage& stage : evaluation.stages) EXPECT_EQ(stage.slots, 1) << what;
}

// Whether the schedule takes m micro-batches on p places with v chunks each; else the rule that its refusal must name.
std::string refusal(const std::string& schedule, int m, int p, int v) {
  const schedules::Placement placement = schedules::by_name(schedule).placement;
  if (placement == schedules::Placement::in_turn) return v > 1 && m % p != 0 ? "must be a multiple of" : "";
  if (placement == schedules::Placement::vee) return v == 2 ? "" : "places stages s and 2p - 1 - s";
  if (schedule == "zb-greedy") return "";
  if (v > 1) return placement == schedules::Placement::both_ways ? "in pairs" : "one stage a device";
  if (placement == schedules::Placement::both_ways && p % 2 != 0) return "even number of stages";
  if (placement == schedules::Placement::both_ways && m % p != 0) return "m mod p = 0";
  if (schedule == "pipedream-2bw" && m < p) return "m >= p";
  return "";
}

// Stages of a chain on p places; plans that the schedule's own placement cannot give are dealt in turn.
Plan grid_plan(const Graph& graph, const std::string& schedule, int m, int p, int v) {
  schedules::Placement placement = schedules::by_name(schedule).placement;
  if (v > 1 && !(placement == schedules::Placement::vee && v == 2)) placement = schedules::Placement::in_turn;
  if (v == 1 && placement == schedules::Placement::vee) placement = schedules::Placement::one_stage;
  const PipelineShape shape{.replicas = std::vector<int>(static_cast<std::size_t>(p * v), 1), .micro_batches = m};
  Plan plan = placed(make_plan(graph, {shape}, schedule), p, placement);
  if (schedule == "zb-greedy" || schedule == "zb-v") plan.schedule_options["moves"] = "20";
  return plan;
}

class EverySchedule : public testing::TestWithParam<std::string> {};
class OneStageSchedule : public EverySchedule {};             // a device holds one stage
class SynchronousOneStageSchedule : public EverySchedule {};  // and several pipelines may be summed

TEST_P(EverySchedule, VerifiesOrNamesItsRuleOnTheGrid) {
  int verified = 0;
  for (int v = 1; v <= 3; ++v) {
    for (int p = 1; p <= 6; ++p) {
      const Graph graph = chain(p * v - 1);  // one operator a stage
      for (int m = 1; m <= 9; ++m) {
        const std::string what = "p=" + std::to_string(p) + " m=" + std::to_string(m) + " v=" + std::to_string(v);
        const bool halves = v == 1 && schedules::by_name(GetParam()).placement == schedules::Placement::both_ways;
        if (halves && m % 2 != 0) continue;  // no plan has half a micro-batch
        const Plan plan = grid_plan(graph, GetParam(), m, p, v);
        const std::string rule = refusal(GetParam(), m, p, v);
        if (rule.empty()) {
          expect_verified(graph, plan, m + m / 2, what);
          ++verified;
          continue;
        }
        try {
          make_program(graph, plan, m);
          ADD_FAILURE() << what << " is not refused";
        } catch (const InvalidInput& error) {
          EXPECT_THAT(error.what(), testing::HasSubstr(rule)) << what;
        }
      }
    }
  }
  EXPECT_GE(verified, 7);
}

TEST_P(EverySchedule, VerifiesOnOtherNetworks) {
  const schedules::Placement placement = schedules::by_name(GetParam()).placement;
  const int v = placement == schedules::Placement::in_turn || placement == schedules::Placement::vee ? 2 : 1;
  const bool flushes = (schedules::by_name(GetParam()).capabilities & schedules::kSynchronous) != 0;
  for (const Graph& graph : {skips(3), normalised(2), tied(6)}) {
    if (!flushes && graph.name() == "tied") continue;
    for (const int p : {1, 2, 3}) {
      if (placement == schedules::Placement::both_ways && p % 2 != 0) continue;
      if (p * v > graph.size()) continue;
      for (const int m : {6, 12}) {
        expect_verified(graph, grid_plan(graph, GetParam(), m, p, v), 2 * m + 1,
                        graph.name() + " p=" + std::to_string(p));
      }
    }
  }
}

TEST_P(OneStageSchedule, VerifiesWithUnequalReplicas) {
  const Graph graph = skips(3);
  for (const std::vector<int>& replicas :
       std::vector<std::vector<int>>{{1, 2}, {2, 1}, {3, 2}, {2, 3}, {1, 3, 2}, {3, 2, 1, 2}}) {
    for (const int m : {1, 2, 5}) {
      if (!refusal(GetParam(), m, static_cast<int>(replicas.size()), 1).empty()) continue;
      // One row a micro-batch leaves replicas with nothing; 7 rows divide by neither 2 nor 3.
      for (const std::int64_t rows : {1, 7}) {
        Plan plan = make_plan(graph, {{.replicas = replicas, .micro_batches = m}}, GetParam());
        if (GetParam() == "zb-greedy") plan.schedule_options["moves"] = "0";
        expect_verified(graph, plan, m * rows, testing::PrintToString(replicas) + " rows " + std::to_string(rows));
      }
    }
  }
}

TEST_P(OneStageSchedule, VerifiesWithPipelinesThatCutDifferently) {
  const schedules::Entry& entry = schedules::by_name(GetParam());
  for (const Graph& graph : {chain(5), tied(4), skips(3)}) {
    for (const int m : {1, 3}) {
      const std::vector<PipelineShape> shapes{
          {.replicas = {1, 2}, .micro_batches = m, .share = 0.7},
          {.replicas = {1, 1, 1}, .micro_batches = m + 1, .share = 0.3},
      };
      const Plan plan = make_plan(graph, shapes, GetParam());
      if ((entry.capabilities & schedules::kSynchronous) != 0) {
        expect_verified(graph, plan, 17, graph.name());
      } else {
        EXPECT_THROW(make_program(graph, plan, 17), InvalidInput);
      }
    }
  }
}

// Replicas of a pipeline: schedules that do not flush update a stage in all of them at once.
TEST_P(OneStageSchedule, VerifiesWithAlikePipelines) {
  for (const Graph& graph : {chain(5), skips(3)}) {
    for (const int m : {3, 6}) {
      const std::vector<PipelineShape> shapes{
          {.replicas = {1, 2, 1}, .micro_batches = m, .share = 0.4},
          {.replicas = {1, 1, 2}, .micro_batches = m, .share = 0.4},
          {.replicas = {1, 1, 1}, .micro_batches = m, .share = 0.2},
      };
      Plan plan = make_plan(graph, shapes, GetParam());
      if (GetParam() == "zb-greedy") plan.schedule_options["moves"] = "0";
      expect_verified(graph, plan, 5 * m + 1, graph.name());
    }
  }
}

TEST_P(SynchronousOneStageSchedule, RowsCoverTheBatchOnceInEveryStage) {
  const Graph graph = chain(5);
  const Plan plan = make_plan(graph,
                              {{.replicas = {3, 2}, .micro_batches = 4, .share = 0.55},
                               {.replicas = {1, 1, 1}, .micro_batches = 3, .share = 0.45}},
                              GetParam());
  const Program program = make_program(graph, plan, 29);
  std::vector<std::vector<int>> seen(3, std::vector<int>(29, 0));  // by number of the stage in its pipeline
  for (const ProgramStage& stage : program.stages) {
    for (const auto& micro_batch : stage.rows) {
      for (const RowInterval rows : micro_batch) {
        for (std::int64_t row = rows.begin; row < rows.end; ++row) {
          ++seen[static_cast<std::size_t>(stage.ref.stage)][static_cast<std::size_t>(row)];
        }
      }
    }
  }
  EXPECT_THAT(seen[0], testing::Each(1));
  EXPECT_THAT(seen[1], testing::Each(1));
}

std::vector<std::string> names(bool one_stage, bool synchronous) {
  std::vector<std::string> all;
  for (const schedules::Entry& entry : schedules::registry()) {
    if (one_stage && entry.placement != schedules::Placement::one_stage) continue;
    if (synchronous && (entry.capabilities & schedules::kSynchronous) == 0) continue;
    all.push_back(entry.name);
  }
  return all;
}
std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = "schedule_" + info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Registry, EverySchedule, testing::ValuesIn(names(false, false)), test_name);
INSTANTIATE_TEST_SUITE_P(Registry, OneStageSchedule, testing::ValuesIn(names(true, false)), test_name);
INSTANTIATE_TEST_SUITE_P(Registry, SynchronousOneStageSchedule, testing::ValuesIn(names(true, true)), test_name);

}  // namespace
}  // namespace millrace::test
