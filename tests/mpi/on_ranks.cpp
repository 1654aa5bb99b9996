// Splits the world for each run.
#include "tests/mpi/on_ranks.h"

#include <gtest/gtest.h>

namespace millrace::testing {

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

TrainingRun on_ranks(int count, const Graph& graph, const Plan& plan, const dataset::Source& source,
                     const RunSettings& settings) {
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, world_rank() < count ? 0 : MPI_UNDEFINED, world_rank(), &part);
  TrainingRun run;
  if (part != MPI_COMM_NULL) {
    run = train(graph, plan, source, settings, part);
    MPI_Comm_free(&part);
  }
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
