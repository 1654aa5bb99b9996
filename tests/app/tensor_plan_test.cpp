// Plans whose replicas have several devices: search, simulation, plan file and memory forecast tell one and the same.
#include <fstream>
#include <map>
#include <set>

#include <gmock/gmock.h>

#include "app/memory_forecast.h"
#include "app/planning.h"
#include "app/prediction.h"
#include "app/tensor_parallel.h"
#include "base/index.h"
#include "graph/footprint.h"
#include "plan/part_reductions.h"
#include "plan/plan_text.h"
#include "tests/app/experiment_file.h"

namespace millrace::app {
namespace {

using testing::HasSubstr;

const char* const kMegatron =
    "  annotations:\n"
    "    - {tensor: \"blocks.*.attention.qkv.weight\", split: 0}\n"
    "    - {tensor: \"blocks.*.mlp.up.weight\", split: 0}\n"
    "    - {tensor: \"embedding.token.weight\", split: 0}\n";

// Eleven classes on two and four devices; three heads where parts cannot be even.
std::string gpt(const std::string& plan, const std::string& more = "", int heads = 4) {
  return "name: g\nmodel: {name: gpt, options: {layers: 2, width: 24, heads: " + std::to_string(heads) +
         ", sequence: 8, vocabulary: 11}}\ndata: {batch: 16}\n" + more + "plan:\n" + plan;
}

constexpr double kRounding = 1e-15;  // seconds, of tenths of milliseconds

const char* const kFlat = "cluster: {flat: {devices: 8, bandwidth: 10 GB/s, latency: 5 us}}\n";

struct Case {
  std::string schedule;
  int tensor;
  bool annotated;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.schedule << "," << c.tensor << "," << c.annotated; }

class TensorPlans : public testing::TestWithParam<Case> {
 protected:
  static std::string search() {
    return "  schedule: " + GetParam().schedule +
           "\n  micro_batches: 4\n  tensor_parallel: " + std::to_string(GetParam().tensor) + "\n" + annotations();
  }
  static std::string annotations() { return GetParam().annotated ? kMegatron : ""; }
};

std::vector<std::tuple<InstructionKind, std::int32_t, bool, OpId, std::int64_t>> collectives(const Program& program) {
  std::vector<std::tuple<InstructionKind, std::int32_t, bool, OpId, std::int64_t>> all;
  for (const TensorCollective& one : program.collectives) {
    all.emplace_back(one.kind, one.stage, one.backward, one.op, one.row_bytes);
  }
  return all;
}

TEST_P(TensorPlans, SearchSimulationAndFileAgree) {
  const Session session = planning_session(ExperimentFile(gpt(search(), kFlat)).read(), 8);
  const Planned planned = make_plans(session, Arguments());
  ASSERT_FALSE(planned.ranking.plans.empty()) << planned.why_not;
  const plan::Candidate& best = planned.ranking.plans.front();
  const Prediction predicted = predict_plan(session, best.plan);
  EXPECT_NEAR(predicted.run.iteration_time.value(), best.report.iteration_time_s, kRounding);
  EXPECT_EQ(predicted.memory.peak(), best.report.peak_memory_bytes);
  EXPECT_TRUE(!predicted.program.collectives.empty() || !GetParam().annotated);  // whole may be best
  ASSERT_TRUE(best.report.bound);
  EXPECT_LE(*best.report.bound, best.report.iteration_time_s);

  // Real devices, all of them, in the rows of the report too.
  std::set<int> devices;
  std::size_t row = 0;
  for (const Pipeline& pipeline : best.plan.pipelines) {
    for (const Stage& stage : pipeline.stages) {
      EXPECT_EQ(stage.tensor_parallel, GetParam().tensor);
      EXPECT_EQ(best.report.stages[row++].devices, stage.devices);
      devices.insert(stage.devices.begin(), stage.devices.end());
    }
  }
  EXPECT_EQ(devices.size(), 8U);

  const ExperimentFile again(gpt("  file: p.yaml\n" + annotations(), kFlat));
  std::ofstream(again.folder() / "p.yaml") << plan::to_yaml(best.plan, session.graph);
  const Session second = planning_session(again.read(), 8);
  const Planned read = make_plans(second, Arguments());
  ASSERT_FALSE(read.ranking.plans.empty()) << read.why_not;
  const plan::Candidate& same = read.ranking.plans.front();
  EXPECT_EQ(same.plan, best.plan);
  EXPECT_DOUBLE_EQ(same.report.iteration_time_s, best.report.iteration_time_s);
  EXPECT_EQ(same.report.peak_memory_bytes, best.report.peak_memory_bytes);
  EXPECT_EQ(same.report.bytes_injected, best.report.bytes_injected);
  const Prediction simulated = predict_plan(second, same.plan);
  EXPECT_NEAR(simulated.run.iteration_time.value(), best.report.iteration_time_s, kRounding);
  EXPECT_EQ(collectives(simulated.program), collectives(predicted.program));
}

INSTANTIATE_TEST_SUITE_P(Schedules, TensorPlans,
                         testing::Values(Case{"1f1b", 2, true}, Case{"1f1b", 2, false}, Case{"1f1b", 4, true},
                                         Case{"gpipe", 4, false}, Case{"zb-h1", 2, true}, Case{"zb-h1", 4, false},
                                         Case{"zb-greedy", 2, true}, Case{"interleaved", 2, true},
                                         Case{"interleaved", 2, false}));

TEST(TensorPlan, RanksAreCountedWithTheDevicesOfAReplica) {
  const Session session =
      planning_session(ExperimentFile(gpt("  stages: 2\n  pipelines: 1\n  tensor_parallel: 4\n")).read(), 4);
  EXPECT_THAT([&] { make_plans(session, Arguments()); },
              testing::ThrowsMessage<InvalidInput>(
                  HasSubstr("x plan.stages 2 x plan.tensor_parallel 4 needs 8 ranks or more")));
}

// Whatever plan is asked for, it is the simulation that ranks it, and no bound passes it.
TEST(TensorPlan, NoPlanIsBetterThanItsBound) {
  const Session session = planning_session(
      ExperimentFile(
          gpt("  schedule: [1f1b, zb-h1]\n  micro_batches: 2\n  tensor_parallel: 2\n" + std::string(kMegatron), kFlat))
          .read(),
      8);
  Arguments arguments;
  arguments.top = 16;
  const Planned planned = make_plans(session, arguments);
  ASSERT_GT(planned.ranking.plans.size(), 5U);
  for (const plan::Candidate& candidate : planned.ranking.plans) {
    if (!candidate.report.bound) continue;
    const double simulated = predict_plan(session, candidate.plan).run.iteration_time.value();
    EXPECT_LE(*candidate.report.bound, simulated * (1 + 1e-9));
  }
}

// Reductions of the closed form and buckets of the program: the same owners, the same bytes.
TEST(TensorPlan, PartsAreReducedByTheirOwners) {
  const Session session =
      planning_session(ExperimentFile(gpt("  pipelines: 2\n  stages: 2\n  micro_batches: 2\n  tensor_parallel: 2\n" +
                                              std::string(kMegatron),
                                          kFlat))
                           .read(),
                       8);
  const Plan plan = make_plans(session, Arguments()).ranking.plans.at(0).plan;
  std::map<std::vector<int>, std::int64_t> buckets, reductions;
  const Program program = training_program(session, plan, 16, 1 << 20);
  for (const Bucket& bucket : program.buckets) {
    if (bucket.owners.size() < 2) continue;
    for (const TensorId tensor : bucket.tensors) {
      const StageParts& parts = *program.stages[at(bucket.stages.front())].parts;
      const Graph& part = *parts.devices[at(bucket.shard)].graph;
      buckets[bucket.owners] += tensor_bytes(part.tensor(parts.part_of.at(tensor)), 4).value();
    }
  }
  for (const plan::Reduction& one : plan::part_reductions(plan, parts_of(session, plan), session.graph, 4)) {
    reductions[one.devices] += one.bytes.value();
  }
  EXPECT_EQ(reductions, buckets);
  EXPECT_GE(buckets.size(), 6U);  // of two stages: each of two parts, and what is whole
}

// On the job's own ranks the devices are asked, and a limit between what parts and wholes need takes parts.
TEST(TensorPlan, ANetworkThatFitsOnlyInPartsIsTaken) {
  const auto planned = [](const std::string& plan, const std::string& limit) {
    const std::string text = gpt("  stages: 1\n  pipelines: 1\n  micro_batches: 4\n" + plan + limit,
                                 "train: {optimizer: {kind: adam}}\n", 3);
    return make_plans(planning_session(ExperimentFile(text).read(), plan.empty() ? 1 : 2), Arguments());
  };
  const std::string parts = "  tensor_parallel: 2\n" + std::string(kMegatron);
  const Planned whole = planned("", ""), split = planned(parts, "");
  const std::int64_t all = whole.ranking.plans.at(0).report.peak_memory_bytes;
  const std::int64_t part = split.ranking.plans.at(0).report.peak_memory_bytes;
  EXPECT_LT(part, all * 3 / 4);
  const auto limit = [](std::int64_t bytes) { return "  memory_limit: " + std::to_string(bytes) + " B\n"; };
  EXPECT_TRUE(planned("", limit(part)).ranking.plans.empty());
  EXPECT_EQ(planned(parts, limit(part)).ranking.plans.at(0).report.peak_memory_bytes, part);
  const Planned refused = planned(parts, limit(part - 1));
  EXPECT_TRUE(refused.ranking.plans.empty());
  ASSERT_TRUE(refused.ranking.least_memory);
  const std::int64_t enough = refused.ranking.least_memory->limit.value();
  EXPECT_THAT(refused.why_not, HasSubstr(std::to_string(enough) + " bytes"));
  EXPECT_FALSE(planned(parts, limit(enough)).ranking.plans.empty());
}

// Tensors alone are counted where the devices are not at hand: near what they hold, and of each device's part.
TEST(TensorPlan, CountedMemoryIsThatOfParts) {
  const std::string plan =
      "  stages: 2\n  pipelines: 1\n  micro_batches: 4\n  tensor_parallel: 2\n" + std::string(kMegatron);
  const Session session = planning_session(ExperimentFile(gpt(plan)).read(), 4);
  const Plan best = make_plans(session, Arguments()).ranking.plans.at(0).plan;
  const auto held = MemoryForecast(session).of(best);
  ASSERT_TRUE(held);
  const Program program = training_program(session, best, 16, 1 << 20);
  const plan::AnalyticBytes bytes(session.graph, training_bytes(session.experiment));
  const planner::ProgramMemory counted = planner::program_memory(program, bytes);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(counted.ranks[rank].weights, held->ranks[rank].weights);
    EXPECT_EQ(counted.ranks[rank].gradients, held->ranks[rank].gradients);
    EXPECT_EQ(counted.ranks[rank].optimizer, held->ranks[rank].optimizer);
  }
}

}  // namespace
}  // namespace millrace::app
