// From an experiment to a search: counts that contradict each other are errors with the equation, not empty searches.
#include "app/planning.h"

#include <gmock/gmock.h>

#include "cluster/local.h"
#include "models/registry.h"
#include "tests/app/experiment_file.h"

namespace millrace::app {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Session session_of(const std::string& text, int ranks) {
  Experiment experiment = ExperimentFile(text).read();
  Graph graph = models::by_name(experiment.model.name).make(experiment.model.options);
  return {std::move(experiment), std::move(graph), cluster::local_cluster(ranks, {}, 1), 1};
}

std::string mlp(const std::string& plan) {
  return "name: t\nmodel: {name: mlp, options: {inputs: 4, hidden: [8, 8], classes: 3}}\ndata: {batch: 24}\nplan: " +
         plan + "\n";
}

std::string why(const std::string& plan, int ranks) {
  try {
    make_plans(session_of(mlp(plan), ranks), Arguments());
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(Planning, MicroBatchSizeGivesTheCountOrShowsTheEquation) {
  const Planned planned = make_plans(session_of(mlp("{pipelines: 2, micro_batch_size: 3}"), 2), Arguments());
  ASSERT_FALSE(planned.ranking.plans.empty());
  EXPECT_EQ(planned.ranking.plans.front().report.micro_batches, 4);  // 2 x 4 x 3 = 24
  EXPECT_THAT(why("{pipelines: 2, micro_batch_size: 5}", 2),
              HasSubstr("2 pipelines x 2 micro-batches x 5 rows = 20, but data.batch is 24"));
  EXPECT_THAT(why("{micro_batch_size: 5}", 2),
              AllOf(HasSubstr("e.yaml:4:"), HasSubstr("plan.micro_batch_size needs plan.pipelines")));
}

TEST(Planning, RanksStagesAndPipelinesMustMatch) {
  EXPECT_THAT(why("{stages: 4}", 3), AllOf(HasSubstr("needs 4 ranks"), HasSubstr("the job has 3")));
  EXPECT_THAT(why("{stages: 4}", 3), HasSubstr("(--ranks 4 plans for that many)"));
  EXPECT_THAT(why("{pipelines: 2}", 3), HasSubstr("the job has 3"));
  EXPECT_THAT(why("{stages: 7}", 8), AllOf(HasSubstr("7 stages"), HasSubstr("6 operators")));
}

TEST(Planning, ABatchTooSmallForItsMicroBatchesIsRefused) {
  EXPECT_THAT(why("{pipelines: 4, micro_batches: 8}", 4),
              HasSubstr("data.batch 24 is smaller than plan.pipelines 4 x plan.micro_batches 8 = 32"));
  EXPECT_EQ(why("{pipelines: 4, micro_batches: 6}", 4), "");
}

TEST(Planning, WithoutAPlanThatFitsTheReasonNamesALimit) {
  const Planned planned = make_plans(session_of(mlp("{memory_limit: 1 B}"), 2), Arguments());
  EXPECT_TRUE(planned.ranking.plans.empty());
  ASSERT_TRUE(planned.ranking.least_memory);
  const std::string enough = std::to_string(planned.ranking.least_memory->limit.value());
  EXPECT_THAT(planned.why_not, HasSubstr(enough + " bytes"));
  EXPECT_FALSE(make_plans(session_of(mlp("{memory_limit: " + enough + " B}"), 2), Arguments()).ranking.plans.empty());
}

TEST(Planning, WarmupNeedsOneEntryAStage) {
  EXPECT_THAT(why("{stages: 2, pipelines: 1, micro_batches: 4, warmup: [1, 1, 0]}", 2),
              AllOf(HasSubstr("e.yaml:4:"), HasSubstr("plan.warmup has 3 entries, the plan has 2 stages")));
}

TEST(Planning, SchedulesThatDoNotFlushKnowNoNormToClipBy) {
  const auto asked = [](const std::string& plan) {
    const ExperimentFile file(mlp(plan) + "train: {clip_norm: 1.5}\n");
    try {
      make_plans(planning_session(file.read(), 2), Arguments());
    } catch (const InvalidInput& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(asked("{schedule: 1f1b}"), "");
  EXPECT_EQ(asked("{schedule: zb-h2}"), "");
  for (const char* schedule : {"pipedream", "pipedream-2bw", "[1f1b, pipedream]"}) {
    EXPECT_THAT(asked(std::string("{schedule: ") + schedule + "}"),
                AllOf(HasSubstr("e.yaml:5:"), HasSubstr("train.clip_norm 1.5: schedule pipedream"),
                      HasSubstr("take a synchronous schedule")));
  }
}

TEST(Planning, AShardedOptimizerIsRefusedWhereItMeansNothing) {
  const auto asked = [](const std::string& plan, const std::string& train = "") {
    const ExperimentFile file(mlp(plan) + "train: {shard_optimizer: true" + train + "}\n");
    try {
      make_plans(planning_session(file.read(), 2), Arguments());
    } catch (const InvalidInput& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(asked("{schedule: 1f1b}"), "");
  EXPECT_THAT(asked("{schedule: [1f1b, pipedream]}"),
              AllOf(HasSubstr("e.yaml:5:"), HasSubstr("train.shard_optimizer true: schedule pipedream"),
                    HasSubstr("take a synchronous schedule")));
  EXPECT_THAT(asked("{schedule: 1f1b}", ", reproducible: any"), HasSubstr("train.reproducible any"));
  EXPECT_THAT(asked("{schedule: 1f1b, tensor_parallel: 2}"), HasSubstr("plan.tensor_parallel 2"));
  EXPECT_THAT(asked("{schedule: 1f1b, reduction: ps}"), HasSubstr("plan.reduction ps"));
}

// Two moments of 8 bytes an element, on both of two replicas or half on each.
TEST(Planning, AShardedOptimizerIsCountedInParts) {
  const auto optimizer = [](const std::string& shard) {
    const ExperimentFile file(mlp("{partitioner: data_parallel, stages: 1, pipelines: 2, micro_batches: 1}") +
                              "train: {optimizer: {kind: adamw}, shard_optimizer: " + shard + "}\n");
    const Planned planned = make_plans(planning_session(file.read(), 2), Arguments());
    return planned.ranking.plans.at(0).report.stages.at(0).memory.optimizer.value();
  };
  const std::int64_t whole = optimizer("false"), half = optimizer("true");
  EXPECT_GT(whole, 0);
  EXPECT_NEAR(static_cast<double>(half), static_cast<double>(whole) / 2, 40 * 8);
}

// What the stages of the best plan compute again, by name.
std::vector<std::vector<std::string>> recomputed(const std::string& recompute, const std::string& more = "") {
  const Session session = session_of(
      mlp("{stages: 2, pipelines: 1, micro_batches: 4, schedule: gpipe" + more + ", recompute: " + recompute + "}"), 2);
  const Planned planned = make_plans(session, Arguments());
  std::vector<std::vector<std::string>> stages;
  for (const Stage& stage : planned.ranking.plans.at(0).plan.pipelines[0].stages) {
    auto& names = stages.emplace_back();
    for (const OpId op : stage.recompute) names.push_back(session.graph.op(op).name);
  }
  return stages;
}

TEST(Planning, RecomputationFollowsTheWordOrThePatterns) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(recomputed("none"), (std::vector<Names>{{}, {}}));
  const auto but_last = recomputed("all-but-last");
  EXPECT_FALSE(but_last[0].empty());
  EXPECT_TRUE(but_last[1].empty());
  const auto given = recomputed("[\"relu*\", linear2]");
  Names all = given[0];
  all.insert(all.end(), given[1].begin(), given[1].end());
  EXPECT_EQ(all, (Names{"relu0", "relu1", "linear2"}));
  EXPECT_THAT(why("{recompute: [relu9]}", 2),
              AllOf(HasSubstr("e.yaml:4:"), HasSubstr("plan.recompute[0]"), HasSubstr("relu")));
}

TEST(Planning, ChosenRecomputationFitsAndTakesNoLongerThanWholeStages) {
  const auto best = [](const std::string& recompute, std::int64_t limit) {
    const Planned planned =
        make_plans(session_of("name: t\nmodel: {name: gpt, options: {layers: 4, width: 16, heads: 2, sequence: 16, "
                              "vocabulary: 20}}\ndata: {batch: 32}\nplan: {stages: 2, pipelines: 1, micro_batches: 16, "
                              "schedule: gpipe, recompute: " +
                                  recompute + ", memory_limit: " + std::to_string(limit) + " B}\n",
                              2),
                   Arguments());
    EXPECT_FALSE(planned.ranking.plans.empty()) << planned.why_not;
    return planned.ranking.plans.at(0).report;
  };
  for (const std::int64_t limit : {500'000, 800'000, 1'000'000, 1'200'000}) {
    const plan::PlanReport chosen = best("chosen", limit), whole = best("auto", limit);
    EXPECT_LE(chosen.peak_memory_bytes, limit);
    EXPECT_LT(chosen.iteration_time_s, whole.iteration_time_s) << limit;
  }
  EXPECT_EQ(best("chosen", 10'000'000).iteration_time_s, best("none", 10'000'000).iteration_time_s);
}

TEST(Planning, ExplicitStagesMustCoverTheModel) {
  EXPECT_EQ(why("{stages: [[linear0, relu0], [linear1, relu1, linear2, loss]]}", 2), "");
  EXPECT_THAT(why("{stages: [[linear0, relu0], [linear1, linear2, loss]]}", 2),
              AllOf(HasSubstr("e.yaml:4:16: plan.stages: not a valid plan"), HasSubstr("relu1")));
  EXPECT_THAT(why("{stages: [[linear0, \"relu*\"], [linear1, \"rel*1\", linear2, loss]]}", 2), HasSubstr("relu1"));
  EXPECT_THAT(why("{stages: [[linear0, relu7], [\"relu*\", linear1, linear2, loss]]}", 2),
              AllOf(HasSubstr("e.yaml:4:16: plan.stages:\n  stages[0][1]"), HasSubstr("relu7")));
}

}  // namespace
}  // namespace millrace::app
