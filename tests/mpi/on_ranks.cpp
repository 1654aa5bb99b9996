// Splits the world once for each number of ranks.
#include "tests/mpi/on_ranks.h"

#include <map>

#include <gtest/gtest.h>

namespace millrace::testing {

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

namespace {

// Of the first `count` ranks, on each of them; made once, since a split is as long as a short run. Collective.
MPI_Comm first_ranks(int count) {
  static std::map<int, MPI_Comm> known;
  const auto [at, is_new] = known.try_emplace(count, MPI_COMM_NULL);
  if (is_new) {
    MPI_Comm_split(MPI_COMM_WORLD, world_rank() < count ? 0 : MPI_UNDEFINED, world_rank(), &at->second);
  }
  return at->second;
}

}  // namespace

TrainingRun on_ranks(int count, const Graph& graph, const Plan& plan, const dataset::Source& source,
                     const RunSettings& settings) {
  const MPI_Comm part = first_ranks(count);
  TrainingRun run;
  if (part != MPI_COMM_NULL) run = train(graph, plan, source, settings, part);
  patient_barrier();
  return run;
}

TrainingRun on_one_rank(const Graph& graph, const dataset::Source& source, const RunSettings& settings) {
  TrainingRun run;
  if (world_rank() == 0) run = train(graph, make_plan(graph, {}), source, settings, MPI_COMM_SELF);
  patient_barrier();
  return run;
}

RunSettings twelve_iterations() {
  RunSettings settings;
  settings.train.iterations = 12;
  settings.train.optimizer.learning_rate = 0.05;
  return settings;
}

RunSettings in_double() {
  RunSettings settings = twelve_iterations();
  settings.train.kernels = "reference";
  settings.train.precision = kernels::Precision::fp64;
  return settings;
}

void expect_equal(const TrainingRun& a, const TrainingRun& b, double limit) {
  if (world_rank() != 0) return;
  EXPECT_LT(row_difference(a, b), limit);
  EXPECT_LT(value_difference(a, b), limit);
}

}  // namespace millrace::testing
