// The benchmark of the simulator's own speed.
#pragma once

#include "app/arguments.h"
#include "base/errors.h"

namespace millrace::app {

/// Rows of devices, micro-batches and stages, each simulated in a process of its own; prints a table or JSON
/// (`rows[] {devices, tensor, pipeline, data, micro_batches, mode, ranks_simulated, steps, seconds, simulated_s,
/// peak_rss_bytes}`).
ExitCode bench_growth(const Arguments& arguments);

}  // namespace millrace::app
