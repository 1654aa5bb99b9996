// Every schedule on every grid of stages, micro-batches, replicas and pipelines gives a program that verifies.
#include <gmock/gmock.h>

#include "program/lowering.h"
#include "program/verifier.h"
#include "schedules/registry.h"
#include "tests/program/networks.h"
#include "tests/program/symbolic_run.h"

namespace millrace::test {
namespace {

using testing::IsEmpty;

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
  for (const ProgramStage& stage : evaluation.stages) EXPECT_EQ(stage.slots, 1) << what;
}

class EverySchedule : public testing::TestWithParam<std::string> {};

TEST_P(EverySchedule, VerifiesOnTheGridOfStagesAndMicroBatches) {
  const std::vector<Graph> graphs = [] {
    std::vector<Graph> list;
    list.push_back(chain(5));
    list.push_back(skips(3));
    list.push_back(tied(4));
    list.push_back(normalised(2));
    return list;
  }();
  for (int p = 1; p <= 6; ++p) {
    for (int m = 1; m <= 9; ++m) {
      for (const Graph& graph : graphs) {
        const PipelineShape shape{.replicas = std::vector<int>(static_cast<std::size_t>(p), 1), .micro_batches = m};
        const std::string what = graph.name() + " p=" + std::to_string(p) + " m=" + std::to_string(m);
        expect_verified(graph, make_plan(graph, {shape}, GetParam()), m + m / 2, what);
      }
    }
  }
}

TEST_P(EverySchedule, VerifiesWithUnequalReplicas) {
  const Graph graph = skips(3);
  for (const std::vector<int>& replicas :
       std::vector<std::vector<int>>{{1, 2}, {2, 1}, {3, 2}, {2, 3}, {1, 3, 2}, {3, 2, 1, 2}}) {
    for (const int m : {1, 2, 5}) {
      // One row a micro-batch leaves replicas with nothing; 7 rows divide by neither 2 nor 3.
      for (const std::int64_t rows : {1, 7}) {
        const Plan plan = make_plan(graph, {{.replicas = replicas, .micro_batches = m}}, GetParam());
        expect_verified(graph, plan, m * rows, testing::PrintToString(replicas) + " rows " + std::to_string(rows));
      }
    }
  }
}

TEST_P(EverySchedule, VerifiesWithPipelinesThatCutDifferently) {
  for (const Graph& graph : {chain(5), tied(4), skips(3)}) {
    for (const int m : {1, 3}) {
      const std::vector<PipelineShape> shapes{
          {.replicas = {1, 2}, .micro_batches = m, .share = 0.7},
          {.replicas = {1, 1, 1}, .micro_batches = m + 1, .share = 0.3},
      };
      expect_verified(graph, make_plan(graph, shapes, GetParam()), 17, graph.name());
    }
  }
}

TEST_P(EverySchedule, RowsCoverTheBatchOnceInEveryStage) {
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

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const schedules::Entry& entry : schedules::registry()) all.push_back(entry.name);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Registry, EverySchedule, testing::ValuesIn(names()),
                         [](const auto& info) { return "schedule_" + info.param; });

}  // namespace
}  // namespace millrace::test
