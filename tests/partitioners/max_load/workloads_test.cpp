// Every figure of the published table for dnn-partitioning: tied to its digits or beaten, from the files themselves.
#include <gmock/gmock.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "import/import.h"
#include "partitioners/common/max_load/exact.h"
#include "partitioners/common/max_load/interleaved.h"
#include "partitioners/common/max_load/linear.h"
#include "plan/published.h"
#include "plan/published/max_load.h"
#include "plan/validate.h"
#include "planner/carried_cluster.h"
#include "tests/import/samples.h"
#include "tests/partitioners/max_load/cases.h"
#include "tests/partitioners/no_deadline.h"

namespace millrace::partitioners {
namespace {

using testing_support::SplitCase;

/// One line of the table; 0: no figure.
struct Row {
  std::string file;
  std::int64_t nodes = 0;
  int accelerators = 0;
  double work = 0;      ///< sum of accelerator times / accelerators
  std::string exact{};  ///< digits as printed
  double linear = 0;
  double pipedream = 0;     ///< a planner like PipeDream's
  double local_search = 0;  ///< not contiguous, best of ten
  double expert = 0;
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.file; }

class DnnPartitioning : public testing::TestWithParam<Row> {
 protected:
  void SetUp() override {
    const auto folder = import::samples::workloads();
    if (!folder) GTEST_SKIP() << "no folder of published workloads; set MILLRACE_WORKLOADS";
    folder_ = *folder / "dnn-partitioning";
    Graph graph = import::load(folder_ / (GetParam().file + ".json")).graph;
    cluster::Cluster machine = planner::carried_cluster(graph, {});
    case_ = std::make_unique<SplitCase>(std::move(graph), std::move(machine));
    evaluate_ = std::make_unique<plan::ClosedFormEvaluator>(case_->problem);
  }

  const plan::Candidate& best(const plan::PlanSet& plans) const { return plans.best(plan::Objective::max_load); }

  // Its figures are those of the plan judged again.
  double sound_value(const plan::Candidate& candidate, bool shared_devices) const {
    const plan::PlanReport& report = candidate.report;
    EXPECT_TRUE(report.feasible) << report.why_not;
    EXPECT_EQ(report.stopped_by, "complete");
    EXPECT_LE(*report.bound, *report.objective_value);
    const plan::Limits limits{case_->cluster.size(), {}, true};
    for (const auto& violation : plan::validate(candidate.plan, case_->graph, limits)) ADD_FAILURE() << violation.text;
    std::vector<int> used;
    for (const Stage& stage : candidate.plan.pipelines[0].stages) used.push_back(stage.devices.at(0));
    std::sort(used.begin(), used.end());
    if (!shared_devices) {
      EXPECT_EQ(std::adjacent_find(used.begin(), used.end()), used.end());
    }
    const plan::Judgement judgement = plan::judge(candidate.plan, case_->problem);
    EXPECT_EQ(judgement.value, *report.objective_value);
    EXPECT_LE(judgement.memory_bytes, plan::split_model(case_->problem).memory_bytes);
    return judgement.value;
  }

  std::filesystem::path folder_;
  std::unique_ptr<SplitCase> case_;
  std::unique_ptr<plan::ClosedFormEvaluator> evaluate_;
};

TEST_P(DnnPartitioning, TheFileIsThatOfTheTable) {
  const SplitModel& model = plan::split_model(case_->problem);
  std::int64_t nodes = 0;
  double seconds = 0;
  for (const SplitModel::Op& op : model.ops) {
    nodes += op.nodes;
    seconds += op.accelerator_s;
  }
  EXPECT_EQ(nodes, GetParam().nodes);
  EXPECT_EQ(model.accelerators, GetParam().accelerators);
  EXPECT_EQ(model.cpus, 1);
  EXPECT_NEAR(seconds / model.accelerators, GetParam().work, 5.01e-4);
}

TEST_P(DnnPartitioning, ExactTiesTheExactOptimumToAllPrintedDigits) {
  const plan::PlanSet plans = max_load_exact(case_->problem, kNoDeadline, *evaluate_);
  const double value = sound_value(best(plans), false);
  EXPECT_EQ(fmt::format("{:.6g}", value), GetParam().exact);
  EXPECT_EQ(*best(plans).report.bound, value);
  EXPECT_EQ(*best(plans).report.optimality_gap, 0);
  EXPECT_EQ(best(plans).report.bound_source, "exact optimum over convex stages");
}

TEST_P(DnnPartitioning, DpOverLinearOrdersIsAtMostTheBestLinearValue) {
  const double value = sound_value(best(max_load_linear(case_->problem, kNoDeadline, *evaluate_)), false);
  const double printed = std::stod(fmt::format("{:.6g}", value));
  EXPECT_LE(printed, GetParam().linear);
  if (GetParam().pipedream > 0) {
    EXPECT_LE(printed, GetParam().pipedream);
  }
}

TEST_P(DnnPartitioning, InterleavedIsBelowTheLocalSearch) {
  const plan::PlanSet plans = max_load_interleaved(case_->problem, 12, kNoDeadline, *evaluate_);
  const double value = sound_value(best(plans), true);
  if (GetParam().local_search > 0) {
    EXPECT_LT(value, GetParam().local_search);
  }
  EXPECT_LE(std::stod(fmt::format("{:.6g}", value)), std::stod(GetParam().exact));
}

// Numbers of the array behind each "nodes" of `text`, in order.
std::vector<std::vector<int>> node_lists(const std::string& text) {
  std::vector<std::vector<int>> lists;
  for (std::size_t at = text.find("\"nodes\""); at != std::string::npos; at = text.find("\"nodes\"", at + 1)) {
    const std::size_t begin = text.find('[', at) + 1;
    std::string numbers = text.substr(begin, text.find(']', begin) - begin);
    std::replace(numbers.begin(), numbers.end(), ',', ' ');
    std::istringstream stream(numbers);
    lists.emplace_back(std::istream_iterator<int>(stream), std::istream_iterator<int>());
  }
  return lists;
}

// The published loads of splits made by hand come out of the formula: it is the published one.
TEST_P(DnnPartitioning, TheExpertsSplitHasThePublishedLoad) {
  if (GetParam().expert == 0) GTEST_SKIP() << "the table has no expert for this row";
  const std::string name = GetParam().file.substr(GetParam().file.find('/') + 1);
  std::ifstream file(folder_ / "human-experts" / (name + "_expert.json"));
  std::stringstream text;
  text << file.rdbuf();
  const std::vector<std::vector<int>> lists = node_lists(text.str());  // the CPU core's, then the accelerators'
  ASSERT_EQ(lists.size(), 7U);
  Plan plan;
  plan.pipelines.emplace_back();
  for (std::size_t list = 0; list < lists.size(); ++list) {
    std::vector<OpId> ops;
    for (const int node : lists[list]) {
      const OpId op = case_->graph.find_op(fmt::format("node{}", node));
      if (op >= 0) ops.push_back(op);  // backward nodes are with their twins
    }
    if (ops.empty()) continue;
    Stage& stage = plan.pipelines[0].stages.emplace_back();
    stage.ops = std::move(ops);
    stage.devices = {list == 0 ? 6 : static_cast<int>(list) - 1};
    stage.shares = {1.0};
  }
  EXPECT_NEAR(plan::judge(plan, case_->problem).value, GetParam().expert, 1e-5 * GetParam().expert);
}

INSTANTIATE_TEST_SUITE_P(
    Table, DnnPartitioning,
    testing::Values(Row{"layer/bert24_inference", 32, 6, 15.401, "17.7899", 17.7899, 17.7899, 17.7776, 20.084},
                    Row{"layer/bert24_training", 64, 6, 36.302, "41.7458", 41.7458, 187.914, 39.9432, 49.4049},
                    Row{"layer/resnet50_inference", 177, 6, 33.575, "33.7747", 33.7747, 39.3981, 35.9851, 0},
                    Row{"layer/resnet50_training", 354, 6, 77.064, "78.6318", 78.6498, 83.6744, 0, 0},
                    Row{"layer/gnmt_inference", 96, 6, 30.427, "32.9107", 33.0326, 33.0311, 31.7827, 46.2085},
                    Row{"layer/gnmt_training", 192, 6, 86.742, "107.004", 107.004, 294.905, 90.9476, 137.154},
                    Row{"operator/bert_l-3_inference", 235, 3, 16.451, "27.9186", 27.9186, 0, 28.9413, 0},
                    Row{"operator/bert_l-3_training", 600, 3, 40.996, "65.3031", 65.3031, 0, 0, 0},
                    Row{"operator/resnet50_inference", 604, 6, 54.189, "124.349", 124.349, 0, 0, 0}),
    [](const auto& info) {
      std::string name = info.param.file;
      std::replace_if(
          name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
      return name;
    });

}  // namespace
}  // namespace millrace::partitioners
