// The charts that results make: each where its figures are there.
#pragma once

#include <vector>

#include "record/page/chart.h"
#include "record/results.h"
#include "record/scaling.h"

namespace millrace::record {

/// Throughput and efficiency against devices; series by kind and by what is scaled.
std::vector<Chart> scaling_charts(const Scaling& scaling);

/// Memory against throughput of all cells with the front of those that no other beats in both.
std::optional<Chart> memory_chart(const DataTable& cells, const std::vector<std::string>& axes);

/// Throughput by partitioner (else by the first axis), each cell against the best of the same other settings: geometric
/// means, by kind.
std::optional<Chart> comparison_chart(const DataTable& cells, const std::vector<std::string>& axes);

/// Predicted against measured iteration time.
std::optional<Chart> prediction_chart(const DataTable& cells);

/// Loss by iteration, of runs.
std::optional<Chart> loss_chart(const std::vector<Results>& all);

/// Busy and idle seconds of each rank, of one run.
std::optional<Chart> rank_chart(const Results& run, const std::string& id);

}  // namespace millrace::record
