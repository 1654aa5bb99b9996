// Complete events, flow events and counters, written by the JSON library.
#include "record/chrome_trace.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace millrace::record {
namespace {

using nlohmann::json;

enum Thread : int { kCompute, kSends, kReceives, kReductions };
constexpr const char* kThreadNames[] = {"computation", "sends", "receives", "reductions"};

double microseconds(Seconds time) { return time.value() * 1e6; }

bool is_send(InstructionKind kind) {
  return kind == InstructionKind::send_activation || kind == InstructionKind::send_gradient;
}
bool is_receive(InstructionKind kind) {
  return kind == InstructionKind::receive_activation || kind == InstructionKind::receive_gradient;
}

Thread thread_of(InstructionKind kind) {
  if (is_send(kind)) return kSends;
  if (is_receive(kind)) return kReceives;
  const bool reduces = kind == InstructionKind::reduce_gradients || kind == InstructionKind::gather_weights;
  return reduces ? kReductions : kCompute;
}

// "forward 3", "update_weights, bucket 2".
std::string title_of(const Instruction& instruction) {
  std::string text(name(instruction.kind));
  if (instruction.bucket >= 0) return text + fmt::format(", bucket {}", instruction.bucket);
  if (instruction.micro_batch >= 0) text += fmt::format(" {}", instruction.micro_batch);
  return text;
}

json details(const Program& program, const TimelineRow& row) {
  const Instruction& instruction = row.instruction;
  json args{{"position", row.position}, {"iteration", row.iteration}};
  if (instruction.stage >= 0) {
    const StageRef ref = program.stages[static_cast<std::size_t>(instruction.stage)].ref;
    args["pipeline"] = ref.pipeline;
    args["stage"] = ref.stage;
  }
  if (instruction.micro_batch >= 0) args["micro_batch"] = instruction.micro_batch;
  if (instruction.transfer >= 0) {
    const Transfer& transfer = program.transfers[static_cast<std::size_t>(instruction.transfer)];
    args["from"] = transfer.sender;
    args["to"] = transfer.receiver;
  }
  if (instruction.bucket >= 0) args["bucket"] = instruction.bucket;
  return args;
}

json metadata(const char* what, int rank, int thread, json args) {
  return {{"ph", "M"}, {"name", what}, {"pid", rank}, {"tid", thread}, {"args", std::move(args)}};
}

json flow(const char* phase, const TimelineRow& row, Seconds time, std::int64_t id) {
  return {{"ph", phase},
          {"cat", "message"},
          {"name", "message"},
          {"pid", row.rank},
          {"tid", thread_of(row.instruction.kind)},
          {"ts", microseconds(time)},
          {"id", id}};
}

}  // namespace

std::string chrome_trace(const Program& program, const Timeline& timeline, const std::string& title,
                         const std::vector<TraceCounter>& counters) {
  json events = json::array();
  for (int rank = 0; rank < static_cast<int>(program.ranks.size()); ++rank) {
    events.push_back(metadata("process_name", rank, 0, {{"name", fmt::format("rank {}", rank)}}));
    events.push_back(metadata("process_sort_index", rank, 0, {{"sort_index", rank}}));
    for (const Thread thread : {kCompute, kSends, kReceives, kReductions}) {
      events.push_back(metadata("thread_name", rank, thread, {{"name", kThreadNames[thread]}}));
    }
  }
  std::map<std::pair<std::int32_t, std::int32_t>, Seconds> sent;  // by message and iteration
  for (const TimelineRow& row : timeline.rows) {
    if (is_send(row.instruction.kind)) sent[{row.instruction.transfer, row.iteration}] = row.start;
  }
  const auto messages = static_cast<std::int64_t>(program.transfers.size());
  for (const TimelineRow& row : timeline.rows) {
    const InstructionKind kind = row.instruction.kind;
    events.push_back({{"ph", "X"},
                      {"name", title_of(row.instruction)},
                      {"cat", name(kind)},
                      {"pid", row.rank},
                      {"tid", thread_of(kind)},
                      {"ts", microseconds(row.start)},
                      {"dur", std::max(0.0, microseconds(row.end) - microseconds(row.start))},
                      {"args", details(program, row)}});
    if (!is_send(kind) && !is_receive(kind)) continue;
    const auto found = sent.find({row.instruction.transfer, row.iteration});
    if (found == sent.end()) continue;
    const std::int64_t id = row.iteration * messages + row.instruction.transfer;
    if (is_send(kind)) {
      events.push_back(flow("s", row, row.start, id));
    } else {
      json end = flow("f", row, std::min(row.end, std::max(row.start, found->second)), id);
      end["bp"] = "e";
      events.push_back(std::move(end));
    }
  }
  for (const TraceCounter& counter : counters) {
    for (const TraceCounter::Sample& sample : counter.samples) {
      json values = json::object();
      for (const auto& [key, value] : sample.values) values[key] = value;
      events.push_back({{"ph", "C"},
                        {"name", counter.name},
                        {"pid", counter.rank},
                        {"tid", 0},
                        {"ts", microseconds(sample.time)},
                        {"args", std::move(values)}});
    }
  }
  const json document{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}, {"otherData", {{"title", title}}}};
  return document.dump() + "\n";
}

}  // namespace millrace::record
