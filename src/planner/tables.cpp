// Formats the figures of reports.
#include "planner/tables.h"

#include <fmt/format.h>

#include "base/text.h"
#include "plan/op_patterns.h"

namespace millrace::planner {
namespace {

std::string seconds(double value) { return format(Seconds(value)); }
std::string bytes(std::int64_t value) { return format(Bytes(value)); }
std::string percent(double fraction) { return fmt::format("{:.1f} %", 100 * fraction); }

std::string stages_of(const plan::Candidate& candidate) {
  std::vector<std::string> pipelines;
  for (const Pipeline& pipeline : candidate.plan.pipelines) {
    std::vector<std::string> replicas;
    for (const Stage& stage : pipeline.stages) replicas.push_back(fmt::format("{}", stage.devices.size()));
    const std::string text = join(replicas, "-");
    if (pipelines.empty() || pipelines.back() != text) pipelines.push_back(text);
  }
  return join(pipelines, " | ");
}

}  // namespace

Table plans_table(const std::vector<plan::Candidate>& plans) {
  Table table{{"partitioner", "schedule", "pipelines", "devices per stage", "micro-batches", "iteration", "samples/s",
               "bubble", "peak memory", "sent", "gap"},
              {}};
  for (const plan::Candidate& candidate : plans) {
    const plan::PlanReport& report = candidate.report;
    table.rows.push_back({report.partitioner, report.schedule, fmt::format("{}", report.pipelines),
                          stages_of(candidate), fmt::format("{}", report.micro_batches),
                          seconds(report.iteration_time_s), fmt::format("{:.1f}", report.throughput_samples_per_s),
                          percent(report.bubble_fraction), bytes(report.peak_memory_bytes),
                          bytes(report.bytes_injected),
                          report.optimality_gap ? percent(*report.optimality_gap) : "-"});
  }
  return table;
}

Table stages_table(const plan::PlanReport& report, const Graph& graph) {
  Table table{{"pipeline", "stage", "operators", "devices", "shares", "forward", "backward", "transfers", "reduction",
               "parameters", "memory"},
              {}};
  for (const plan::StageReport& stage : report.stages) {
    table.rows.push_back({fmt::format("{}", stage.pipeline), fmt::format("{}", stage.index),
                          join(plan::to_patterns(graph, stage.ops)), fmt::format("{}", fmt::join(stage.devices, " ")),
                          fmt::format("{:.3g}", fmt::join(stage.shares, " ")), seconds(stage.forward_s),
                          seconds(stage.backward_s), seconds(2 * stage.transfer_s), seconds(stage.reduction_s),
                          bytes(stage.parameter_bytes), bytes(stage.memory_bytes)});
  }
  return table;
}

Table memory_table(const plan::PlanReport& report) {
  Table table{{"pipeline", "stage", "weights", "gradients", "optimizer", "live micro-batches", "activations",
               "workspace", "buffers", "total"},
              {}};
  for (const plan::StageReport& stage : report.stages) {
    const plan::StageMemory& memory = stage.memory;
    table.rows.push_back({fmt::format("{}", stage.pipeline), fmt::format("{}", stage.index), format(memory.weights),
                          format(memory.gradients), format(memory.optimizer),
                          fmt::format("{}", stage.live_micro_batches), format(memory.activations),
                          format(memory.workspace), format(memory.buffers), format(memory.total())});
  }
  return table;
}

Table refusals_table(const std::vector<plan::Refused>& refusals) {
  Table table{{"partitioner", "schedule", "micro-batches", "pipelines", "stages", "reason", "detail"}, {}};
  for (const plan::Refused& refused : refusals) {
    table.rows.push_back({refused.partitioner, refused.schedule, fmt::format("{}", refused.micro_batches),
                          fmt::format("{}", refused.pipelines),
                          refused.stages > 0 ? fmt::format("{}", refused.stages) : "any",
                          std::string(plan::text(refused.reason)), refused.detail});
  }
  return table;
}

}  // namespace millrace::planner
