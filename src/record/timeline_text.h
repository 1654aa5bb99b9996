// The timeline in characters, for terminals.
#pragma once

#include <string>

#include "program/program.h"
#include "program/timeline.h"

namespace millrace::record {

/// A line a rank of `width` columns, each the same part of the time that the timeline spans:
/// the micro-batch's last digit in a forward, a letter (a for 0) in a backward, w in a weight gradient, r where it
/// recomputes, u in an update, '.' where the rank computes nothing; the longest share of a column decides. A line under
/// them tells the span. \pre width > 0
std::string timeline_text(const Program& program, const Timeline& timeline, int width = 100);

}  // namespace millrace::record
