// Predicted and measured stage times, matched by rank and stage.
#include "app/stage_time_rows.h"

#include <limits>

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace millrace::app {

std::vector<StageTimeRow> predicted_stage_times(const std::vector<TimelineRow>& rows, const Program& program) {
  std::vector<StageTimeRow> times;
  for (const StageSeconds& predicted : stage_seconds(rows)) {
    const StageRef ref = program.stages[static_cast<std::size_t>(predicted.stage)].ref;
    times.push_back({ref, predicted, {predicted.rank, predicted.stage}});
  }
  return times;
}

void take_measured(const std::vector<StageSeconds>& measured, std::vector<StageTimeRow>& rows) {
  for (StageTimeRow& row : rows) {
    for (const StageSeconds& own : measured) {
      if (own.rank == row.predicted.rank && own.stage == row.predicted.stage) row.measured = own;
    }
  }
}

namespace {

// An interrupted run has no last iteration.
bool is_measured(const StageSeconds& seconds) { return seconds.forward + seconds.backward > Seconds(0); }

}  // namespace

planner::Table stage_times_text(const std::vector<StageTimeRow>& rows, const std::string& kind) {
  planner::Table table{{"rank", "pipeline", "stage", "forward " + kind, "predicted", "backward " + kind, "predicted"},
                       {}};
  for (const StageTimeRow& row : rows) {
    const bool known = is_measured(row.measured);
    table.rows.push_back({std::to_string(row.predicted.rank), std::to_string(row.ref.pipeline),
                          std::to_string(row.ref.stage), known ? format(row.measured.forward) : "-",
                          format(row.predicted.forward), known ? format(row.measured.backward) : "-",
                          format(row.predicted.backward)});
  }
  return table;
}

nlohmann::json stage_times_json(const std::vector<StageTimeRow>& rows, const std::string& kind) {
  const auto times = [](const StageSeconds& seconds) {
    return nlohmann::json{{"forward_s", seconds.forward.value()}, {"backward_s", seconds.backward.value()}};
  };
  nlohmann::json all = nlohmann::json::array();
  for (const StageTimeRow& row : rows) {
    all.push_back({{"rank", row.predicted.rank},
                   {"pipeline", row.ref.pipeline},
                   {"stage", row.ref.stage},
                   {kind, is_measured(row.measured) ? times(row.measured) : nlohmann::json()},
                   {"predicted", times(row.predicted)}});
  }
  return all;
}

record::DataTable stage_times_table(const std::vector<StageTimeRow>& rows) {
  using storage::ColumnType;
  record::DataTable table{
      {{"rank", ColumnType::int64, "1", "rank of the job"},
       {"pipeline", ColumnType::int64, "1", "data-parallel group"},
       {"stage", ColumnType::int64, "1", "stage of the pipeline"},
       {"forward_s", ColumnType::float64, "s", "forward, median over the micro-batches; NaN: not measured"},
       {"predicted_forward_s", ColumnType::float64, "s", "the same, as simulated"},
       {"backward_s", ColumnType::float64, "s", "backward, both halves and recomputation"},
       {"predicted_backward_s", ColumnType::float64, "s", "the same, as simulated"}},
      {}};
  for (const StageTimeRow& row : rows) {
    const double unknown = is_measured(row.measured) ? 0 : std::numeric_limits<double>::quiet_NaN();
    table.rows.push_back({row.predicted.rank, std::int64_t{row.ref.pipeline}, std::int64_t{row.ref.stage},
                          row.measured.forward.value() + unknown, row.predicted.forward.value(),
                          row.measured.backward.value() + unknown, row.predicted.backward.value()});
  }
  return table;
}

}  // namespace millrace::app
