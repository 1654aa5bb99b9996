// Gathers the rows of computations by rank, stage and kind.
#include "app/stage_seconds.h"

#include <algorithm>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

namespace millrace::app {
namespace {

bool is_backward(InstructionKind kind) {
  return kind == InstructionKind::backward || kind == InstructionKind::backward_input ||
         kind == InstructionKind::backward_weight || kind == InstructionKind::recompute;
}

Seconds median(std::vector<Seconds>& seconds) {
  if (seconds.empty()) return Seconds(0);
  std::sort(seconds.begin(), seconds.end());
  const std::size_t middle = seconds.size() / 2;
  return seconds.size() % 2 == 1 ? seconds[middle] : (seconds[middle - 1] + seconds[middle]) / 2.0;
}

}  // namespace

std::vector<StageSeconds> stage_seconds(const std::vector<TimelineRow>& rows) {
  // The segments of a forward or backward are one (program/instruction.h).
  std::map<std::pair<std::int64_t, std::int64_t>, std::map<InstructionKind, std::map<std::int64_t, Seconds>>> found;
  for (const TimelineRow& row : rows) {
    const InstructionKind kind = row.instruction.kind;
    if (row.iteration != rows.front().iteration || row.end <= row.start) continue;
    if (kind != InstructionKind::forward && !is_backward(kind)) continue;
    found[{row.rank, row.instruction.stage}][kind][row.instruction.micro_batch] += row.end - row.start;
  }
  std::vector<StageSeconds> stages;
  for (auto& [place, kinds] : found) {
    StageSeconds stage{place.first, place.second};
    for (auto& [kind, micro_batches] : kinds) {
      std::vector<Seconds> seconds;
      for (const auto& [micro_batch, whole] : micro_batches) seconds.push_back(whole);
      (kind == InstructionKind::forward ? stage.forward : stage.backward) += median(seconds);
    }
    stages.push_back(stage);
  }
  return stages;
}

std::string to_text(const std::vector<StageSeconds>& stages) {
  nlohmann::json all = nlohmann::json::array();
  for (const StageSeconds& s : stages) all.push_back({s.rank, s.stage, s.forward.value(), s.backward.value()});
  return all.dump();
}

std::vector<StageSeconds> stage_seconds_from_text(const std::string& text) {
  std::vector<StageSeconds> stages;
  for (const nlohmann::json& s : nlohmann::json::parse(text)) {
    stages.push_back({s.at(0).get<std::int64_t>(), s.at(1).get<std::int64_t>(), Seconds(s.at(2).get<double>()),
                      Seconds(s.at(3).get<double>())});
  }
  return stages;
}

}  // namespace millrace::app
