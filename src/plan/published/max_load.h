// What the objective max_load and the searches for it read of a problem: the file's figures, and what a device is.
#pragma once

#include "graph/carried.h"
#include "plan/problem.h"

namespace millrace::plan {

/// Figures of the graph's operators, as read from the file.
/// \throws InvalidInput  when the graph was not read from a dnn-partitioning file.
const SplitModel& split_model(const Problem& problem);

/// Whether `device` is a CPU core, by its name "cpu": no transfer costs it anything and its memory has no limit. The
/// others are accelerators.
bool is_cpu_core(const Problem& problem, int device);

/// Bytes of operators that `device` may hold; infinite for CPU cores and where nothing limits an accelerator.
double max_load_memory(const Problem& problem, int device);

}  // namespace millrace::plan
