// After the first iterations a rank allocates nothing: kernels, updates, messages, sums and data, with every feature
// on.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "tests/mpi/allocations.h"
#include "tests/mpi/forced_variants.h"
#include "tests/mpi/native_variants.h"
#include "tests/mpi/networks.h"
#include "tests/mpi/on_ranks.h"
#include "tests/mpi/tensor_plans.h"

namespace millrace::testing {
namespace {

constexpr std::int64_t kSteps = 18;
constexpr std::size_t kWarmUp = 9;  // batches of 22, 22 and 6 in turn: each size three times at least

RunSettings counted() {
  RunSettings s;
  s.batch = 22;
  s.tail = dataset::Tail::uneven;
  s.train.iterations = kSteps;
  s.train.optimizer = {.kind = runtime::OptimizerKind::adamw, .learning_rate = 1e-3, .weight_decay = 0.01};
  s.lowering.hiding = Hiding::update;
  return s;
}

/// Trains on the first ranks and expects that no iteration after the first ones allocates on any of them. The last one
/// keeps a timeline, so it may.
void expect_no_allocation(int ranks, const Graph& graph, const Plan& plan, RunSettings s) {
  std::vector<std::int64_t> after;
  after.reserve(kSteps);
  s.iteration_ended = [&] { after.push_back(allocations_of_all_threads()); };
  const SmallSource source(graph, 50, 10);
  on_ranks(ranks, graph, plan, source, s);
  if (world_rank() >= ranks) return;
  ASSERT_EQ(after.size(), static_cast<std::size_t>(kSteps));
  for (std::size_t i = kWarmUp; i + 1 < after.size(); ++i) {
    EXPECT_EQ(after[i] - after[i - 1], 0) << "rank " << world_rank() << " iteration " << i + 1;
  }
}

void expect_no_allocation(const Graph& graph, const Grid& grid, const RunSettings& s = counted()) {
  SCOPED_TRACE(fmt::format("{}: {} pipelines x {} stages x {} micro-batches, {}, recompute {}", graph.name(),
                           grid.pipelines, grid.stages, grid.micro_batches, grid.schedule,
                           static_cast<int>(grid.recompute)));
  expect_no_allocation(grid.ranks(), graph, make_plan(graph, grid), s);
}

TEST(Allocation, TheCounterSeesAllThreads) {
  const std::int64_t before = allocations_of_all_threads();
  auto words = std::make_unique<std::vector<int>>(100);
  EXPECT_GE(allocations_of_all_threads() - before, 2);
  EXPECT_EQ((*words)[0], 0);
}

TEST(Allocation, NetworksAllocateNothing) {
  for (const std::string& network : small_networks()) {
    const Graph graph = small_network(network);
    expect_no_allocation(graph, {2, 2, 3, "1f1b"});
    expect_no_allocation(graph, {1, 4, 3, "gpipe"});
    expect_no_allocation(graph, {2, 2, 2, "interleaved", Recompute::all});
    expect_no_allocation(graph, {1, 1, 1, "gpipe"});
  }
}

TEST(Allocation, SchedulesAllocateNothing) {
  const Graph graph = small_network("mlp");
  for (const char* schedule :
       {"hippie", "interleaved", "zb-h1", "zb-h2", "zb-v", "zb-greedy", "pipedream", "pipedream-2bw"}) {
    for (const Grid& grid : {Grid{1, 1, 4, schedule}, Grid{1, 2, 4, schedule}, Grid{2, 2, 4, schedule}}) {
      expect_no_allocation(graph, grid);
    }
  }
  expect_no_allocation(graph, {1, 2, 4, "chimera"});
  expect_no_allocation(graph, {1, 4, 4, "chimera"});
}

TEST(Allocation, RecomputationAllocatesNothing) {
  for (const std::string network : {"mlp", "resnet", "gpt"}) {
    const Graph graph = small_network(network);
    for (const Recompute recompute : {Recompute::all, Recompute::all_but_last, Recompute::chosen}) {
      expect_no_allocation(graph, {1, 2, 3, "1f1b", recompute});
    }
  }
  expect_no_allocation(small_network("mlp"), {1, 2, 4, "zb-v", Recompute::all});
  expect_no_allocation(small_network("mlp"), {1, 2, 3, "pipedream-2bw", Recompute::chosen});
}

TEST(Allocation, UpdatesAllocateNothing) {
  const Graph graph = small_network("gpt");
  RunSettings sharded = counted();
  sharded.lowering.shard_optimizer = true;
  expect_no_allocation(graph, {2, 2, 3, "1f1b"}, sharded);
  expect_no_allocation(graph, {4, 1, 2, "gpipe"}, sharded);
  sharded.train.clip_norm = 0.1;
  sharded.lowering.hiding = Hiding::backward;
  expect_no_allocation(graph, {3, 1, 2, "gpipe"}, sharded);
  for (const double clip_norm : {1e-3, 1e9}) {  // every iteration is begun again, and none is
    RunSettings validated = counted();
    validated.train.clip_norm = clip_norm;
    validated.lowering.hiding = Hiding::backward;
    validated.lowering.post_validation = true;
    expect_no_allocation(graph, {1, 4, 5, "zb-h2"}, validated);
    expect_no_allocation(graph, {2, 2, 4, "zb-h2"}, validated);
  }
  Plan deferred = make_plan(graph, {2, 2, 4, "1f1b"});
  deferred.schedule_options["deferred_weights"] = "3";
  expect_no_allocation(4, graph, deferred, counted());
}

TEST(Allocation, TensorParallelPartsAllocateNothing) {
  const auto expect_none = [](const std::string& network, const Grid& grid, int tensor,
                              const std::vector<shard::Annotation>& annotations) {
    SCOPED_TRACE(fmt::format("{}, {}", network, grid.schedule));
    const Graph graph = small_network(network);
    const Plan plan = make_tensor_plan(graph, grid, tensor);
    RunSettings s = counted();
    split_operators(graph, plan, annotations, s);
    expect_no_allocation(grid.ranks() * tensor, graph, plan, s);
  };
  const std::vector<shard::Annotation> layers{split_of("linear0.weight", 0), split_of("linear2.weight", 0)};
  expect_none("mlp", {1, 2, 3, "1f1b"}, 2, layers);
  expect_none("mlp", {2, 1, 2, "gpipe", Recompute::all}, 2, layers);
  const std::vector<shard::Annotation> blocks{split_of("blocks.*.attention.qkv.weight", 0),
                                              split_of("blocks.*.mlp.up.weight", 0),
                                              split_of("embedding.token.weight", 0, {3, 1})};
  expect_none("gpt", {1, 2, 3, "zb-h1"}, 2, blocks);
  expect_none("resnet", {1, 2, 2, "1f1b"}, 2, {split_of("layer*.0.conv1.weight", 0), split_of("fc.weight", 0)});
}

TEST(Allocation, AnyGridAllocatesNothing) {
  RunSettings any = counted();
  any.train.any_grid = true;
  any.train.clip_norm = 1.0;
  any.lowering.hiding = Hiding::backward;
  for (const std::string network : {"mlp", "lenet", "gpt"}) {
    expect_no_allocation(small_network(network), {2, 2, 3, "1f1b"}, any);
    expect_no_allocation(small_network(network), {3, 1, 2, "gpipe"}, any);
  }
}

TEST(Allocation, WinogradAllocatesNothing) {
  const Graph graph = winograd_network();
  RunSettings s = counted();
  s.train.variants = all_winograd(graph);
  expect_no_allocation(graph, {2, 2, 3, "1f1b"}, s);
  expect_no_allocation(graph, {1, 2, 2, "zb-h1", Recompute::chosen}, s);
  expect_no_allocation(graph, {1, 1, 1, "gpipe"}, s);
  EXPECT_FALSE(s.train.variants->used().empty());
}

TEST(Allocation, ProductsInBf16AllocateNothing) {
  RunSettings s = counted();
  s.train.precision = kernels::Precision::bf16;
  for (const std::string network : {"mlp", "gpt"}) {
    const Graph graph = small_network(network);
    for (const auto& variants : {std::make_shared<kernels::Variants>(), all_native(graph)}) {
      s.train.variants = variants;
      expect_no_allocation(graph, {2, 2, 3, "1f1b"}, s);
    }
  }
}

// Ranks that share no memory: what MPI itself allocates in its calls does not count.
TEST(Allocation, MessagesByMpiAllocateNothing) {
  RunSettings s = counted();
  s.transport.shares_memory = false;
  for (const std::string network : {"mlp", "gpt"}) {
    expect_no_allocation(small_network(network), {2, 2, 3, "1f1b"}, s);
    expect_no_allocation(small_network(network), {1, 4, 4, "interleaved"}, s);
  }
  s.lowering.shard_optimizer = true;
  expect_no_allocation(small_network("mlp"), {2, 2, 3, "1f1b"}, s);
}

}  // namespace
}  // namespace millrace::testing
