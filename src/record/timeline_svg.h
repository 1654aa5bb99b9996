// The picture of a timeline: a lane for each rank, a box for each computation.
#pragma once

#include <string>
#include <vector>

#include "program/program.h"
#include "program/timeline.h"

namespace millrace::record {

struct SvgOptions {
  std::string title;
  std::string footer;  ///< "iteration 33.0 ms · bubble 27 %"
};

/// A self-contained SVG of the timeline's computation; rows of no length are left out. Forward and backward boxes carry
/// their micro-batch number where it fits; reductions and updates are thin bars under their lane.
std::string timeline_svg(const Program& program, const Timeline& timeline, const SvgOptions& options);

}  // namespace millrace::record
