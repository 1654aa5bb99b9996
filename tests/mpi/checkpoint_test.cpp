// A run that goes on from a checkpoint is the run that never stopped: bit for bit under the same plan, within rounding
// under any other (INTERFACES 7).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/errors.h"
#include "storage/step_folders.h"
#include "tests/mpi/networks.h"
#include "tests/mpi/on_ranks.h"
#include "tests/mpi/shared_folder.h"

namespace millrace::testing {
namespace {

// Dropout, momentum in two moments, a warm-up that is not over, batches of two sizes, an epoch's end on the way.
RunSettings settings(const std::filesystem::path& folder) {
  RunSettings s = twelve_iterations();
  s.train.optimizer = {.kind = runtime::OptimizerKind::adamw, .learning_rate = 1e-3, .weight_decay = 0.01};
  s.train.learning_rate = {.kind = runtime::ScheduleKind::cosine, .warmup = 6};
  s.train.clip_norm = 1.0;
  s.tail = dataset::Tail::uneven;
  s.train.checkpoint_every = 5;
  s.train.checkpoint_keep = 3;
  s.checkpoints = folder;
  return s;
}

Graph network(const std::string& name) {
  if (name != "gpt") return small_network(name);
  return models::make(
      "gpt",
      {{"layers", "2"}, {"width", "16"}, {"heads", "2"}, {"sequence", "6"}, {"vocabulary", "11"}, {"dropout", "0.1"}});
}

// What is left after an interruption between iterations 5 and 10.
void forget_after(const std::filesystem::path& folder, std::int64_t step) {
  patient_barrier();
  if (world_rank() != 0) return;
  const storage::StepFolders folders(folder);
  for (const std::int64_t later : folders.steps()) {
    if (later > step) std::filesystem::remove_all(folders.complete(later));
  }
}

TrainingRun resume(int ranks, const Graph& graph, const Plan& plan, const dataset::Source& source, RunSettings s) {
  forget_after(s.checkpoints, 5);
  patient_barrier();
  s.resume = true;
  return on_ranks(ranks, graph, plan, source, s);
}

// The last iterations of `whole`, as a resumed run sees them.
TrainingRun tail_of(TrainingRun whole, std::size_t rows) {
  whole.rows.erase(whole.rows.begin(), whole.rows.end() - static_cast<std::ptrdiff_t>(rows));
  return whole;
}

TEST(Checkpoint, TheSamePlanGoesOnBitForBit) {
  for (const std::string name : {"gpt", "resnet", "lenet"}) {
    SCOPED_TRACE(name);
    const SharedFolder folder;
    const Graph graph = network(name);
    const SmallSource source(graph, 58, 10);
    const Plan plan = make_plan(graph, {2, 3, 3, "1f1b"});
    const TrainingRun whole = on_ranks(6, graph, plan, source, settings(folder.path()));
    const TrainingRun rest = resume(6, graph, plan, source, settings(folder.path()));
    if (world_rank() != 0) continue;
    ASSERT_EQ(rest.rows.size(), 7U);
    EXPECT_EQ(rest.rows.front().iteration, 6);
    EXPECT_EQ(rest.rows.back().samples, whole.rows.back().samples);
    EXPECT_EQ(row_difference(rest, tail_of(whole, 7)), 0);
    EXPECT_EQ(rest.values, whole.values);
  }
}

TEST(Checkpoint, AnyOtherPlanGoesOnWithinRounding) {
  for (const std::string name : {"gpt", "lenet"}) {
    SCOPED_TRACE(name);
    const SharedFolder folder;
    const Graph graph = network(name);
    const SmallSource source(graph, 58, 10);
    const Plan plan = make_plan(graph, {2, 3, 3, "1f1b"});
    const TrainingRun whole = on_ranks(6, graph, plan, source, settings(folder.path()));
    for (const Grid& grid :
         {Grid{1, 1, 1, "gpipe"}, Grid{3, 1, 2, "gpipe"}, Grid{1, 4, 5, "1f1b"}, Grid{2, 2, 1, "hippie"}}) {
      SCOPED_TRACE(fmt::format("{} x {} x {}", grid.pipelines, grid.stages, grid.micro_batches));
      const TrainingRun rest = resume(grid.ranks(), graph, make_plan(graph, grid), source, settings(folder.path()));
      expect_equal(rest, tail_of(whole, 7), 1e-4);  // Adam's first steps enlarge rounding
    }
  }
}

TEST(Checkpoint, ARunThatIsDoneHasNothingToGoOnWith) {
  const SharedFolder folder;
  const Graph graph = network("lenet");
  const SmallSource source(graph, 58, 10);
  const Plan plan = make_plan(graph, {1, 2, 2, "1f1b"});
  RunSettings s = settings(folder.path());
  on_ranks(2, graph, plan, source, s);
  patient_barrier();
  s.resume = true;
  const TrainingRun none = on_ranks(2, graph, plan, source, s);  // from iteration 12 of 12
  if (world_rank() != 0) return;
  EXPECT_TRUE(none.rows.empty());
  EXPECT_EQ(storage::StepFolders(folder.path()).steps(), (std::vector<std::int64_t>{12, 10, 5}));
}

TEST(Checkpoint, OnlyTheNewestAreKept) {
  const SharedFolder folder;
  const Graph graph = network("lenet");
  const SmallSource source(graph, 58, 10);
  RunSettings s = settings(folder.path());
  s.train.checkpoint_every = 2;
  s.train.checkpoint_keep = 2;
  on_ranks(3, graph, make_plan(graph, {3, 1, 1, "1f1b"}), source, s);
  if (world_rank() != 0) return;
  EXPECT_EQ(storage::StepFolders(folder.path()).steps(), (std::vector<std::int64_t>{12, 10}));
  // Replicas take turns: each of three has written some of the buckets.
  const auto entries = std::filesystem::directory_iterator(folder.path() / "step-00000012");
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 6);  // three of ranks, plan, configuration, manifest
}

TEST(Checkpoint, WhatOneRankCannotWriteIsToldByAll) {
  const SharedFolder folder;
  const Graph graph = network("mlp");
  const SmallSource source(graph, 58, 10);
  const Plan plan = make_plan(graph, {1, 3, 2, "1f1b"});
  RunSettings s = settings(folder.path());
  s.train.iterations = 5;
  on_ranks(3, graph, plan, source, s);
  if (world_rank() == 1) s.checkpoints = "/proc/none";  // of this rank alone
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, world_rank() < 3 ? 0 : MPI_UNDEFINED, world_rank(), &part);
  if (part != MPI_COMM_NULL) {
    std::string told;
    try {
      train(graph, plan, source, s, part);
    } catch (const Error& error) {
      told = error.what();
      EXPECT_EQ(error.code(), ExitCode::failed);
    }
    EXPECT_NE(told.find("rank 1: /proc/none/step-00000005.partial"), std::string::npos) << told;
    MPI_Comm_free(&part);
  }
  patient_barrier();
  if (world_rank() != 0) return;
  // The earlier one is as it was, and nothing is left of the other.
  EXPECT_EQ(storage::StepFolders(folder.path()).steps(), (std::vector<std::int64_t>{5}));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "step-00000005.partial"));
}

}  // namespace
}  // namespace millrace::testing
