// The report as one HTML file that opens from a disk without a network.
#pragma once

#include <string>
#include <vector>

#include "record/paper_table.h"
#include "record/results.h"

namespace millrace::record {

/// Context, verdicts, charts with the tables behind them, and all cells. Everything is inside: styles, data, the chart
/// library with its licence.
std::string report_page(const std::string& title, const std::vector<Results>& all, const std::vector<PaperRow>& paper);

}  // namespace millrace::record
