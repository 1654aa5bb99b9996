// Operators split over the devices of a stage give the losses, gradient norms and parameters of one rank: networks,
// pipelines, stages, two and four devices a replica, even and uneven parts. Pairwise: a selection; Full: all.
#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/families.h"
#include "tests/mpi/networks.h"
#include "tests/mpi/on_ranks.h"
#include "tests/mpi/shared_folder.h"
#include "tests/mpi/tensor_plans.h"

namespace millrace::testing {
namespace {

struct TensorCase {
  std::string network;
  Grid grid;
  int tensor = 2;
  bool uneven = false;

  int ranks() const { return grid.ranks() * tensor; }
  std::string text() const {
    return fmt::format("{}: {} pipelines x {} stages x {} devices, {} micro-batches, {}, recompute {}, {}", network,
                       grid.pipelines, grid.stages, tensor, grid.micro_batches, grid.schedule,
                       static_cast<int>(grid.recompute), uneven ? "uneven" : "even");
  }
};

// Four devices have a head each; 11 entries of the vocabulary they never share evenly.
Graph network_of(const std::string& name) {
  if (name == "gpt" || name == "sequence") {
    return models::make_gpt(
        {.layers = 2, .width = 16, .heads = 4, .sequence = 6, .vocabulary = 11, .tied = true, .dropout = 0.1});
  }
  if (name == "bert") {
    return models::make_bert(
        "bert", {.layers = 2, .width = 16, .heads = 4, .sequence = 6, .vocabulary = 11, .tied = true, .dropout = 0.1});
  }
  return small_network(name);
}

std::vector<shard::Annotation> annotations_of(const TensorCase& c) {
  std::vector<double> weights;
  if (c.uneven) weights = c.tensor == 2 ? std::vector<double>{3, 1} : std::vector<double>{2, 1, 1, 1};
  std::vector<std::string> tensors{"blocks.*.attention.qkv.weight", "blocks.*.mlp.up.weight", "embedding.token.weight"};
  if (c.network == "mlp") tensors = {"linear0.weight", "linear2.weight"};
  if (c.network == "lenet") tensors = {"conv1.weight", "fc1.weight"};
  if (c.network == "resnet") tensors = {"layer*.0.conv1.weight", "fc.weight"};
  std::vector<shard::Annotation> all;
  for (const std::string& tensor : tensors) all.push_back(split_of(tensor, 0, weights));
  // Between the products, positions are split: all-gathers and reduce-scatters in place of all-reduces. The head takes
  // them whole, so that the tied table is in the same parts there.
  if (c.network == "sequence") {
    all.push_back({.tensor = "", .op = "blocks.*.add?", .axis = "", .dim = 1, .weights = {}, .where = "test"});
    all.push_back({.tensor = "", .op = "head", .axis = "", .dim = 2, .weights = weights, .where = "test"});
  }
  return all;
}

std::vector<TensorCase> pairwise_cases() {
  return {{"mlp", {1, 1, 3, "gpipe"}, 2, false},
          {"mlp", {2, 2, 2, "1f1b"}, 2, true},
          {"mlp", {2, 1, 2, "1f1b", Recompute::all}, 4, false},
          {"lenet", {1, 2, 2, "1f1b"}, 2, true},
          {"lenet", {2, 1, 1, "gpipe"}, 2, false},
          {"lenet", {1, 1, 2, "1f1b"}, 4, true},
          {"resnet", {1, 2, 2, "1f1b"}, 2, false},
          {"resnet", {2, 1, 2, "gpipe"}, 2, true},
          {"resnet", {1, 2, 2, "1f1b", Recompute::all}, 4, false},
          {"gpt", {2, 2, 2, "1f1b"}, 2, false},
          {"gpt", {1, 2, 3, "zb-h1"}, 2, true},
          {"gpt", {1, 1, 2, "1f1b", Recompute::chosen}, 4, false},
          {"sequence", {1, 2, 2, "1f1b"}, 2, false},
          {"sequence", {2, 1, 2, "gpipe", Recompute::all}, 2, true},
          {"sequence", {1, 1, 2, "1f1b"}, 4, false},
          {"bert", {2, 1, 2, "1f1b", Recompute::all_but_last}, 2, true},
          {"bert", {1, 2, 2, "interleaved"}, 2, false},
          {"bert", {1, 1, 3, "gpipe"}, 4, true}};
}

std::vector<TensorCase> all_cases() {
  std::vector<TensorCase> all;
  for (const std::string network : {"mlp", "lenet", "resnet", "gpt", "sequence", "bert"}) {
    for (const int pipelines : {1, 2}) {
      for (const int stages : {1, 2}) {
        for (const int tensor : {2, 4}) {
          if (pipelines * stages * tensor > 8) continue;
          for (const bool uneven : {false, true})
            all.push_back({network, {pipelines, stages, 2, "1f1b"}, tensor, uneven});
        }
      }
    }
  }
  return all;
}

RunSettings settings(const std::string& kernels, kernels::Precision precision) {
  RunSettings s;
  s.batch = 24;
  s.train.iterations = 20;
  s.train.kernels = kernels;
  s.train.precision = precision;
  s.train.optimizer = {
      .kind = runtime::OptimizerKind::sgd, .learning_rate = 0.01, .momentum = 0.9, .weight_decay = 0.01};
  return s;
}

class TensorParallel : public ::testing::TestWithParam<bool> {
 protected:
  static TrainingRun split_run(const TensorCase& c, const Graph& graph, RunSettings s) {
    const Plan plan = make_tensor_plan(graph, c.grid, c.tensor);
    split_operators(graph, plan, annotations_of(c), s);
    return on_ranks(c.ranks(), graph, plan, SmallSource(graph, 96, 10), s);
  }

  // Batch norm normalises within micro-batches, so one rank has the same ones.
  const TrainingRun& one_rank(const TensorCase& c, const Graph& graph, const RunSettings& s) {
    const bool batch_norm = !graph.buffers().empty();
    const std::int64_t micro_batches = batch_norm ? c.grid.pipelines * c.grid.micro_batches : 1;
    const auto key = std::make_tuple(c.network, micro_batches, s.train.precision);
    if (!references_.contains(key)) {
      references_[key] =
          on_ranks(1, graph, make_plan(graph, {1, 1, micro_batches, "gpipe"}), SmallSource(graph, 96, 10), s);
    }
    return references_[key];
  }

 private:
  std::map<std::tuple<std::string, std::int64_t, kernels::Precision>, TrainingRun> references_;
};

TEST_P(TensorParallel, EqualsOneRankInDouble) {
  const RunSettings s = settings("reference", kernels::Precision::fp64);
  for (const TensorCase& c : GetParam() ? all_cases() : pairwise_cases()) {
    SCOPED_TRACE(c.text());
    const Graph graph = network_of(c.network);
    const TrainingRun& one = one_rank(c, graph, s);
    expect_equal(split_run(c, graph, s), one, 1e-9);
  }
}

// With the kernels that users have. A ReLU may take its other side within rounding, so networks that have one are held
// to what a wrong gradient exceeds; the double kernels above hold them to all digits.
TEST_P(TensorParallel, EqualsOneRankWithinRounding) {
  const RunSettings s = settings("auto", kernels::Precision::fp32);
  for (const TensorCase& c : GetParam() ? all_cases() : pairwise_cases()) {
    const bool smooth = c.network == "gpt" || c.network == "bert" || c.network == "sequence";
    SCOPED_TRACE(c.text());
    const Graph graph = network_of(c.network);
    const TrainingRun& one = one_rank(c, graph, s);
    expect_equal(split_run(c, graph, s), one, smooth ? 1e-5 : 1e-3);
  }
}

INSTANTIATE_TEST_SUITE_P(Pairwise, TensorParallel, ::testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Full, TensorParallel, ::testing::Values(true));

// Devices so slow beside their links that the automatic choice splits even small operators.
void split_without_annotations(const Graph& graph, const Plan& plan, RunSettings& s) {
  const int ranks = static_cast<int>(plan.pipelines.size() * plan.pipelines.front().stages.size()) *
                    plan.pipelines.front().stages.front().tensor_parallel;
  const auto count = static_cast<std::size_t>(ranks);
  cluster::Device device{.name = "slow", .flops = {{"fp32", FlopsPerSecond(1e5)}}};
  device.bandwidth = BytesPerSecond(1e11);
  const cluster::Cluster cluster("slow", cluster::Kind::described, std::vector<cluster::Device>(count, device),
                                 std::vector<int>(count, 0), {{"node", {BytesPerSecond(1e12), Seconds(1e-9)}}}, {});
  s.lowering.parts = shard::PlanSplitter(graph, cluster, {.batch = 8}).parts(plan);
}

bool splits_something(const RunSettings& s) {
  return std::any_of(s.lowering.parts.begin(), s.lowering.parts.end(),
                     [](const auto& parts) { return parts != nullptr && !parts->shares.empty(); });
}

using TensorParallelAlone = TensorParallel;

TEST_P(TensorParallelAlone, TheAutomaticChoiceEqualsOneRank) {
  const RunSettings s = settings("reference", kernels::Precision::fp64);
  for (const TensorCase& c : std::vector<TensorCase>{{"mlp", {2, 1, 2, "1f1b"}, 2},
                                                     {"mlp", {1, 1, 2, "1f1b"}, 4},
                                                     {"resnet", {1, 2, 2, "1f1b"}, 2},
                                                     {"resnet", {1, 1, 2, "gpipe"}, 4},
                                                     {"gpt", {2, 1, 2, "1f1b"}, 2},
                                                     {"gpt", {1, 2, 2, "1f1b"}, 4},
                                                     {"bert", {1, 2, 2, "zb-h1"}, 2},
                                                     {"bert", {1, 1, 2, "1f1b", Recompute::all}, 4}}) {
    SCOPED_TRACE(c.text());
    const Graph graph = network_of(c.network);
    const Plan plan = make_tensor_plan(graph, c.grid, c.tensor);
    RunSettings split = s;
    split_without_annotations(graph, plan, split);
    EXPECT_TRUE(splits_something(split));
    expect_equal(on_ranks(c.ranks(), graph, plan, SmallSource(graph, 96, 10), split), one_rank(c, graph, s), 1e-9);
  }
}

INSTANTIATE_TEST_SUITE_P(Alone, TensorParallelAlone, ::testing::Values(false));

void expect_equal_bits(const TrainingRun& a, const TrainingRun& b) {
  if (world_rank() != 0) return;
  ASSERT_EQ(a.rows.size(), b.rows.size());
  for (std::size_t i = 0; i < a.rows.size(); ++i) {
    EXPECT_EQ(a.rows[i].loss, b.rows[i].loss) << "iteration " << i + 1;
    EXPECT_EQ(a.rows[i].gradient_norm, b.rows[i].gradient_norm) << "iteration " << i + 1;
  }
  EXPECT_TRUE(a.values == b.values) << "relative difference " << value_difference(a, b);
}

// train.reproducible: grid. zb-h1 waits for every exchange where 1f1b computes weight gradients beside those of the
// backward; both add the same terms in the same order.
TEST(TensorParallelBits, AreThoseOfThePlanAndOverlapChangesNone) {
  const Graph graph = network_of("gpt");
  const SmallSource source(graph, 96, 10);
  const RunSettings s = settings("reference", kernels::Precision::fp32);
  const auto run = [&](const std::string& schedule) {
    const TensorCase c{"gpt", {1, 2, 2, schedule}, 4};
    const Plan plan = make_tensor_plan(graph, c.grid, c.tensor);
    RunSettings split = s;
    split_operators(graph, plan, annotations_of(c), split);
    return on_ranks(c.ranks(), graph, plan, source, split);
  };
  const TrainingRun first = run("1f1b");
  expect_equal_bits(run("1f1b"), first);
  expect_equal_bits(run("zb-h1"), first);
}

// What a replica holds in parts is whole in a checkpoint: another plan goes on from it, and this one from another's.
TEST(TensorParallelCheckpoint, AnyPlanGoesOn) {
  const Graph graph = network_of("gpt");
  const SmallSource source(graph, 96, 10);
  RunSettings s = settings("reference", kernels::Precision::fp64);
  s.train.iterations = 10;
  s.train.optimizer = {.kind = runtime::OptimizerKind::adamw, .learning_rate = 1e-3, .weight_decay = 0.01};
  s.train.checkpoint_every = 5;
  s.train.checkpoint_keep = 3;
  const Plan one = make_plan(graph, {1, 1, 1, "gpipe"});
  const TrainingRun whole = on_ranks(1, graph, one, source, s);
  const TensorCase c{"gpt", {1, 2, 2, "1f1b"}, 2, true};
  const Plan plan = make_tensor_plan(graph, c.grid, c.tensor);
  RunSettings split = s;
  split_operators(graph, plan, annotations_of(c), split);
  for (const bool split_first : {true, false}) {
    SCOPED_TRACE(split_first ? "split, then one rank" : "one rank, then split");
    const SharedFolder folder;
    RunSettings first = split_first ? split : s, second = split_first ? s : split;
    first.checkpoints = second.checkpoints = folder.path();
    first.train.iterations = 5;
    second.resume = true;
    on_ranks(split_first ? 4 : 1, graph, split_first ? plan : one, source, first);
    const TrainingRun rest = on_ranks(split_first ? 1 : 4, graph, split_first ? one : plan, source, second);
    if (world_rank() != 0) continue;
    EXPECT_EQ(rest.rows.size(), 5U);
    EXPECT_LT(value_difference(rest, whole), 1e-9);
  }
}

}  // namespace
}  // namespace millrace::testing
