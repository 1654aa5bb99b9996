// From a rank program to a job: instructions become steps, messages edges, owners groups.
#pragma once

#include "graph/graph.h"
#include "program/program.h"
#include "sim/costs.h"
#include "sim/job.h"

namespace millrace::sim {

/// A program a rank. Step::label is the instruction's position in the rank's list; an instruction may be several steps.
/// Computation of no rows costs nothing. The norm waits for all ranks and costs one all-reduce of 8 bytes.
/// \throws Error  (ExitCode::internal) when a message is received and never sent: the program does not verify.
Job job_of(const Graph& graph, const Program& program, const SimCosts& costs);

}  // namespace millrace::sim
