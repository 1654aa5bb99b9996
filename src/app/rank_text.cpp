// Rank rows and timelines as JSON between ranks.
#include "app/rank_text.h"

#include <nlohmann/json.hpp>

namespace millrace::app {

using nlohmann::json;

std::string to_text(const record::RankRow& row) {
  const RankReport& r = row.report;
  return json{
      {"rank", row.rank},
      {"host", row.host},
      {"device", row.device},
      {"pipeline", row.pipeline},
      {"stages", row.stages},
      {"threads", row.threads},
      {"weights", r.weights_bytes},
      {"gradients", r.gradients_bytes},
      {"optimizer", r.optimizer_bytes},
      {"activations", r.activations_bytes},
      {"workspace", r.workspace_bytes},
      {"buffers", r.buffers_bytes},
      {"rss", r.peak_rss_bytes},
      {"busy", r.busy.value()},
      {"idle", r.idle.value()},
      {"sent", r.sent_bytes},
      {"received", r.received_bytes},
      {"exposed",
       {r.exposed_messages.value(), r.exposed_reductions.value(), r.exposed_tensor.value(), r.exposed_sums.value()}},
      {"in_flight", r.reductions_in_flight.value()}}
      .dump();
}

record::RankRow rank_row_from_text(const std::string& text) {
  const json j = json::parse(text);
  record::RankRow row;
  row.rank = j.at("rank");
  row.host = j.at("host").get<std::string>();
  row.device = j.at("device");
  row.pipeline = j.at("pipeline");
  row.stages = j.at("stages").get<std::string>();
  row.threads = j.at("threads");
  row.report.weights_bytes = j.at("weights");
  row.report.gradients_bytes = j.at("gradients");
  row.report.optimizer_bytes = j.at("optimizer");
  row.report.activations_bytes = j.at("activations");
  row.report.workspace_bytes = j.at("workspace");
  row.report.buffers_bytes = j.at("buffers");
  row.report.peak_rss_bytes = j.at("rss");
  row.report.busy = Seconds(j.at("busy").get<double>());
  row.report.idle = Seconds(j.at("idle").get<double>());
  row.report.sent_bytes = j.at("sent");
  row.report.received_bytes = j.at("received");
  row.report.exposed_messages = Seconds(j.at("exposed")[0].get<double>());
  row.report.exposed_reductions = Seconds(j.at("exposed")[1].get<double>());
  row.report.exposed_tensor = Seconds(j.at("exposed")[2].get<double>());
  row.report.exposed_sums = Seconds(j.at("exposed")[3].get<double>());
  row.report.reductions_in_flight = Seconds(j.at("in_flight").get<double>());
  return row;
}

std::string to_text(const std::vector<TimelineRow>& rows) {
  json all = json::array();
  for (const TimelineRow& row : rows) {
    const Instruction& i = row.instruction;
    all.push_back({row.rank, row.position, static_cast<int>(i.kind), i.stage, i.micro_batch, i.transfer, i.bucket,
                   row.start.value(), row.end.value()});
  }
  return all.dump();
}

std::vector<TimelineRow> timeline_from_text(const std::string& text) {
  std::vector<TimelineRow> rows;
  for (const json& j : json::parse(text)) {
    TimelineRow row;
    row.rank = j[0];
    row.position = j[1];
    row.instruction = {static_cast<InstructionKind>(j[2].get<int>()), j[3], j[4], j[5], j[6]};
    row.start = Seconds(j[7].get<double>());
    row.end = Seconds(j[8].get<double>());
    rows.push_back(row);
  }
  return rows;
}

}  // namespace millrace::app
