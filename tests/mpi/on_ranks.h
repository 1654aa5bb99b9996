// Runs of the first ranks of the job while the others wait, and their comparison.
#pragma once

#include "tests/mpi/training_run.h"

namespace millrace::testing {

int world_rank();

/// Collective over the world: the first `count` ranks train, the others nap. Parameters are on rank 0.
TrainingRun on_ranks(int count, const Graph& graph, const Plan& plan, const dataset::Source& source,
                     const RunSettings& settings);
TrainingRun on_one_rank(const Graph& graph, const dataset::Source& source, const RunSettings& settings);

/// 12 iterations of sgd.
RunSettings twelve_iterations();
/// The same with the reference kernels in double precision.
RunSettings in_double();

/// On rank 0: loss and gradient norm of every step and the parameters at the end, within `limit`.
void expect_equal(const TrainingRun& a, const TrainingRun& b, double limit = 1e-5);

}  // namespace millrace::testing
