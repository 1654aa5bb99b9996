// Pictures of a page that are no charts: when each rank did what, and which stages a network was cut into.
#pragma once

#include <string>

#include "record/results.h"

namespace millrace::record {

/// The iteration that a run with --trace kept: a lane a rank, a box an instruction. Buttons and keys zoom and move.
/// Empty for results without it.
std::string timeline_html(const Results& results);

/// The plan of a run, or of the fastest cell of a sweep: a box a stage, with its operators and devices, pipelines below
/// each other. Empty where there is no plan.
std::string stage_map_html(const Results& results);

/// Text of an element or an attribute.
std::string escaped(const std::string& text);

}  // namespace millrace::record
