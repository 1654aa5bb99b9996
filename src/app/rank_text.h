// What a rank tells rank 0 at the end of a run, as text for World::gather.
#pragma once

#include <string>
#include <vector>

#include "program/timeline.h"
#include "record/results_file.h"

namespace millrace::app {

std::string to_text(const record::RankRow& row);
record::RankRow rank_row_from_text(const std::string& text);

std::string to_text(const std::vector<TimelineRow>& rows);
std::vector<TimelineRow> timeline_from_text(const std::string& text);

}  // namespace millrace::app
