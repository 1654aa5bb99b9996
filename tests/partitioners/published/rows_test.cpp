// The rows of the published tables: tied to their digits or beaten, from the files of the published planners.
#include <gmock/gmock.h>

#include "import/import.h"
#include "partitioners/common/published.h"
#include "partitioners/dp.h"
#include "plan/evaluator.h"
#include "plan/validate.h"
#include "tests/import/samples.h"
#include "tests/partitioners/published/cases.h"

namespace millrace::partitioners {
namespace {

using testing_support::equal_nodes;
using testing_support::PublishedCase;

constexpr double kGiB = 1024.0 * 1024 * 1024;

/// A row of a table; 0: the published planner did not finish.
struct Row {
  std::string file;
  int nodes = 1;
  int devices = 1;  ///< of a node
  double inner = 1, outer = 1;
  double memory_gib = 0;
  std::int64_t batch = 1;  ///< 0: the file's
  std::int64_t micro_batch = 0;
  double value = 0;
  double digits = 1e-6;  ///< relative, to which it was printed
  bool proven = true;    ///< our value is a proven optimum
};

void PrintTo(const Row& row, std::ostream* out) {
  *out << fmt::format("{} on {} x {}", row.file, row.nodes, row.devices);
}

class PublishedRow : public testing::TestWithParam<Row> {
 protected:
  void run(plan::Objective objective) {
    const auto folder = import::samples::workloads();
    if (!folder) GTEST_SKIP() << "no folder of published workloads; set MILLRACE_WORKLOADS";
    const Row& row = GetParam();
    import::Imported file = import::load(*folder / row.file);
    const std::optional<Bytes> memory =
        row.memory_gib > 0 ? std::optional(Bytes(static_cast<std::int64_t>(row.memory_gib * kGiB))) : std::nullopt;
    PublishedCase c(std::move(file.graph), equal_nodes(row.nodes, row.devices, row.inner, row.outer, memory), objective,
                    row.batch > 0 ? row.batch : file.batch);
    if (row.micro_batch > 0) c.problem.micro_batch_size = row.micro_batch;
    plan::ClosedFormEvaluator evaluate(c.problem);
    config::Values options = config::defaults(dp_options());
    const auto plans = published_plans(c.problem, options, evaluate);
    ASSERT_TRUE(plans && !plans->candidates().empty());
    const plan::Candidate& best = plans->best(objective);
    ASSERT_TRUE(best.report.objective_value && best.report.bound);
    const double value = *best.report.objective_value;
    EXPECT_TRUE(best.report.feasible) << best.report.why_not;
    EXPECT_EQ(best.report.partitioner, "dp");
    EXPECT_EQ(best.report.stopped_by, "complete");
    EXPECT_TRUE(plan::validate(best.plan, c.graph, {}).empty());
    EXPECT_EQ(plan::judge(best.plan, c.problem).value, value);
    EXPECT_LE(*best.report.bound, value);
    EXPECT_EQ(best.report.bound_source == "exact optimum", row.proven) << *best.report.bound << " to " << value;
    if (row.proven) {
      EXPECT_EQ(*best.report.bound, value);
    }
    if (row.value > 0) {
      EXPECT_LE(value, row.value * (1 + row.digits));
    }
    RecordProperty("value", fmt::format("{:.10g}", value));
    RecordProperty("published", fmt::format("{:.10g}", row.value));
    RecordProperty("gap", fmt::format("{:.4g}", value / *best.report.bound - 1));
  }
};

std::string row_name(const testing::TestParamInfo<Row>& info) {
  std::string name = fmt::format("{}_{}x{}_{}", std::filesystem::path(info.param.file).stem().string(),
                                 info.param.nodes, info.param.devices, info.param.memory_gib);
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

class PiperRow : public PublishedRow {};

TEST_P(PiperRow, TiesOrBeats) { run(plan::Objective::time_per_sample); }

Row piper(const std::string& file, int devices, double memory_gib, double value, double digits = 1e-6) {
  return {.file = "piper/" + file + ".json",
          .devices = devices,
          .inner = 25 * kGiB,
          .memory_gib = memory_gib,
          .batch = 0,
          .value = value,
          .digits = digits};
}

INSTANTIATE_TEST_SUITE_P(
    Table, PiperRow,
    testing::Values(piper("bert32a100", 32, 2, 0.0665495), piper("bert32a100", 128, 2, 0.0151464),
                    piper("bert32a100", 8, 8, 0.1658557), piper("bert32a100", 32, 8, 0.0415155),
                    piper("bert32a100", 128, 8, 0.0101209), piper("bert32a100", 512, 8, 0.00256112785, 1e-8),
                    piper("bert32a100", 1024, 8, 0.00130317952, 1e-8), piper("bert32a100", 32, 80, 0.0308440, 2e-6),
                    piper("resnet", 8, 8, 63.4335366, 1e-8), piper("resnet", 16, 4, 35.3334375, 1e-8),
                    piper("resnet", 32, 2, 24.6258985, 1e-8)),
    row_name);

class PipedreamRow : public PublishedRow {};

TEST_P(PipedreamRow, TiesOrBeats) { run(plan::Objective::pipedream); }

Row pipedream(const std::string& file, int devices, double value) {
  return {.file = "pipedream/" + file + ".txt", .devices = devices, .inner = 1e9, .value = value, .digits = 2e-6};
}

Row two_levels(const std::string& file, double value, bool proven = true) {
  return {.file = "pipedream/" + file + ".txt",
          .nodes = 4,
          .devices = 4,
          .inner = 10e9,
          .outer = 1.25e9,
          .value = value,
          .digits = 4e-6,
          .proven = proven};
}

Row unproven(Row row) {
  row.proven = false;
  return row;
}

INSTANTIATE_TEST_SUITE_P(Table, PipedreamRow,
                         testing::Values(pipedream("alexnet", 4, 0.0342171), pipedream("vgg16", 4, 0.2055209),
                                         pipedream("resnet18", 4, 0.1000040), pipedream("resnet50", 4, 0.1628809),
                                         pipedream("densenet121", 4, 0.0899760), pipedream("gnmt", 4, 0.0258680),
                                         pipedream("gnmt_large", 4, 0.1371290), pipedream("vgg16", 16, 0.0565298),
                                         pipedream("resnet50", 16, 0.0478013), pipedream("gnmt", 16, 0.0192850),
                                         pipedream("gnmt_large", 16, 0), unproven(pipedream("nasnetamobile", 16, 0)),
                                         two_levels("alexnet", 0.0150995), two_levels("vgg16", 0.0671340),
                                         two_levels("gnmt", 0.0110810, false), two_levels("resnet50", 0)),
                         row_name);

class DappleRow : public PublishedRow {};

TEST_P(DappleRow, TiesOrBeats) { run(plan::Objective::dapple); }

Row dapple(const std::string& file, std::int64_t batch, std::int64_t micro_batch, double value) {
  return {.file = "dapple/" + file + ".txt",
          .nodes = 2,
          .devices = 8,
          .inner = 25e9,
          .outer = 1e9,
          .batch = batch,
          .micro_batch = micro_batch,
          .value = value,
          .digits = 0};
}

INSTANTIATE_TEST_SUITE_P(Table, DappleRow,
                         testing::Values(dapple("vgg-19-pbs-32", 2048, 32, 0.765145),
                                         dapple("bert-48-pbs-2", 64, 2, 0.891641),
                                         dapple("gnmt-32-pbs-64-simplified", 1024, 64, 0.739422),
                                         dapple("amoeba-18-pbs-8", 128, 8, 1.455774)),
                         row_name);

// The published plan of vgg-19, by the formula: 0.765144.
TEST(DappleTable, PublishedPlanOfVgg19) {
  const auto folder = import::samples::workloads();
  if (!folder) GTEST_SKIP() << "no folder of published workloads; set MILLRACE_WORKLOADS";
  PublishedCase c(import::load(*folder / "dapple/vgg-19-pbs-32.txt").graph, equal_nodes(2, 8, 1),
                  plan::Objective::dapple, 2048);
  c.problem.micro_batch_size = 32;
  std::vector<int> stage_of;
  for (OpId op = 0; op < c.graph.size(); ++op) stage_of.push_back(op <= 18 ? 0 : 1);  // operator 0 is the input
  Plan plan = testing_support::one_pipeline(stage_of, {15, 1});
  plan.pipelines[0].micro_batches = 64;
  const plan::Judgement judgement = plan::judge(plan, c.problem);
  EXPECT_EQ(judgement.why_not, "");
  EXPECT_NEAR(judgement.value, 0.765144, 5e-7);
}

}  // namespace
}  // namespace millrace::partitioners
