// Stage times of a run: predicted beside measured, as rows for the summary, the document and the results file.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "app/stage_seconds.h"
#include "planner/tables.h"
#include "program/program.h"
#include "record/data_table.h"

namespace millrace::app {

/// One stage on one rank.
struct StageTimeRow {
  StageRef ref;
  StageSeconds predicted;
  StageSeconds measured;
};

std::vector<StageTimeRow> predicted_stage_times(const std::vector<TimelineRow>& rows, const Program& program);

/// Puts what ranks measured beside the predictions of the same rank and stage.
void take_measured(const std::vector<StageSeconds>& measured, std::vector<StageTimeRow>& rows);

/// \param kind  what the measured ones are called: "measured", "emulated", …
planner::Table stage_times_text(const std::vector<StageTimeRow>& rows, const std::string& kind);
nlohmann::json stage_times_json(const std::vector<StageTimeRow>& rows, const std::string& kind);
record::DataTable stage_times_table(const std::vector<StageTimeRow>& rows);

}  // namespace millrace::app
