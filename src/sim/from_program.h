// From a rank program to a job: instructions become steps, messages edges, owners groups.
#pragma once

#include "graph/graph.h"
#include "program/program.h"
#include "program/unroll.h"
#include "sim/costs.h"
#include "sim/job.h"

namespace millrace::sim {

/// What a step of a rank belongs to: Step::label is an index in the list of its rank.
using Labels = std::vector<std::vector<UnrolledInstruction>>;

struct ProgramJob {
  Job job;        ///< a program a rank, for all iterations
  Labels labels;  ///< by rank
};

/// `iterations` of the program from the first to the last (program/unroll.h). An instruction may be several steps:
/// a backward in which reductions start is cut at their operators. Computation of no rows costs nothing. A stash
/// costs nothing until an update overwrites the weights that it holds: these are copied first. The norm waits for all
/// ranks and costs one all-reduce of 8 bytes. \throws Error  (ExitCode::internal) when a message is received and never
/// sent: the program does not verify.
ProgramJob job_of(const Graph& graph, const Program& program, const SimCosts& costs, int iterations = 1);

}  // namespace millrace::sim
