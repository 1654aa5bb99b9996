// Formats the figures of reports.
#include "planner/tables.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "plan/op_patterns.h"
#include "plan/published.h"

namespace millrace::planner {
namespace {

std::string seconds_text(double value) { return format(Seconds(value)); }
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

// "0-3 8": runs of numbers, so that a large group stays one cell.
std::string numbers(const std::vector<int>& list) {
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < list.size();) {
    std::size_t end = i + 1;
    while (end < list.size() && list[end] == list[end - 1] + 1) ++end;
    runs.push_back(end - i < 3 ? fmt::format("{}", fmt::join(list.begin() + static_cast<std::ptrdiff_t>(i),
                                                             list.begin() + static_cast<std::ptrdiff_t>(end), " "))
                               : fmt::format("{}-{}", list[i], list[end - 1]));
    i = end;
  }
  return join(runs, " ");
}

std::string shares(const std::vector<double>& list) {
  constexpr std::size_t kShown = 8;
  const bool even = std::adjacent_find(list.begin(), list.end(), std::not_equal_to<>()) == list.end();
  if (even && list.size() > 2) return fmt::format("{} x {:.3g}", list.size(), list.front());
  const std::size_t shown = std::min(kShown, list.size());
  return fmt::format("{:.3g}{}", fmt::join(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(shown), " "),
                     list.size() > kShown ? fmt::format(" … {} in all", list.size()) : "");
}

// A stage that is no run of the canonical order may be hundreds of names.
std::string operators(const Graph& graph, const OpList& ops) {
  constexpr std::size_t kShown = 4;
  std::vector<std::string> patterns = plan::to_patterns(graph, ops);
  if (patterns.size() <= kShown) return join(patterns);
  patterns.resize(kShown - 1);
  return fmt::format("{}, … {} operators", join(patterns), ops.size());
}

std::vector<int> nodes_of(const std::vector<int>& devices, const cluster::Cluster& cluster) {
  std::vector<int> nodes;
  for (const int device : devices) nodes.push_back(cluster.node_of(device));
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

// Figures of this product's own model: none where a published formula judged, in other units and with other rules.
struct Ours {
  bool published;
  std::string operator()(std::string text) const { return published ? "-" : std::move(text); }
};

// With the unit of the objective.
std::string value(const plan::PlanReport& report) {
  if (!report.objective_value) return "-";
  if (report.objective_unit == "s") return seconds_text(*report.objective_value);
  if (report.objective_unit == "bytes") return bytes(static_cast<std::int64_t>(*report.objective_value));
  return fmt::format("{:.5g} {}", *report.objective_value, report.objective_unit);
}

}  // namespace

Table plans_table(const std::vector<plan::Candidate>& plans) {
  Table table{{"partitioner", "schedule", "pipelines", "devices per stage", "micro-batches", "value", "iteration",
               "samples/s", "bubble", "peak memory", "sent", "gap"},
              {}};
  for (const plan::Candidate& candidate : plans) {
    const plan::PlanReport& report = candidate.report;
    const Ours ours{plan::is_published(report)};
    const bool unknown = report.peak_memory_bytes == 0;  // by a formula without memory
    table.rows.push_back({report.partitioner, report.schedule, fmt::format("{}", report.pipelines),
                          stages_of(candidate), fmt::format("{}", report.micro_batches), value(report),
                          ours(seconds_text(report.iteration_time_s)),
                          ours(fmt::format("{:.1f}", report.throughput_samples_per_s)),
                          ours(percent(report.bubble_fraction)), unknown ? "-" : bytes(report.peak_memory_bytes),
                          bytes(report.bytes_injected), report.optimality_gap ? percent(*report.optimality_gap) : "-"});
  }
  return table;
}

Table stages_table(const plan::PlanReport& report, const Graph& graph) {
  Table table{{"pipeline", "stage", "operators", "devices", "shares", "forward", "backward", "transfers", "reduction",
               "parameters", "memory"},
              {}};
  const Ours ours{plan::is_published(report)};
  const bool split = std::any_of(report.stages.begin(), report.stages.end(), [](const plan::StageReport& stage) {
    return stage.tensor_forward_s + stage.tensor_backward_s > 0;
  });
  constexpr std::ptrdiff_t kBehindBackward = 7;
  if (split) table.columns.insert(table.columns.begin() + kBehindBackward, "collectives");
  for (const plan::StageReport& stage : report.stages) {
    table.rows.push_back({fmt::format("{}", stage.pipeline), fmt::format("{}", stage.index),
                          operators(graph, stage.ops), numbers(stage.devices), shares(stage.shares),
                          ours(seconds_text(stage.forward_s)), ours(seconds_text(stage.backward_s)),
                          ours(seconds_text(2 * stage.transfer_s)), ours(seconds_text(stage.reduction_s)),
                          bytes(stage.parameter_bytes), ours(bytes(stage.memory_bytes))});
    if (!split) continue;
    std::vector<std::string>& row = table.rows.back();
    row.insert(row.begin() + kBehindBackward, ours(seconds_text(stage.tensor_forward_s + stage.tensor_backward_s)));
  }
  return table;
}

Table stage_details(const plan::PlanReport& report, const cluster::Cluster& cluster) {
  Table table{{"pipeline", "stage", "operators", "devices", "nodes", "live micro-batches", "busy", "bubble",
               "transfers", "sent", "activations", "reduction"},
              {}};
  const Ours ours{plan::is_published(report)};
  for (const plan::StageReport& stage : report.stages) {
    const double m = static_cast<double>(report.micro_batches);
    const double busy = m * (stage.forward_s + stage.backward_s);
    const double idle = report.iteration_time_s > 0 ? std::max(0.0, 1 - busy / report.iteration_time_s) : 0.0;
    table.rows.push_back({fmt::format("{}", stage.pipeline), fmt::format("{}", stage.index),
                          fmt::format("{}", stage.ops.size()), numbers(stage.devices),
                          numbers(nodes_of(stage.devices, cluster)), ours(fmt::format("{}", stage.live_micro_batches)),
                          ours(seconds_text(busy)), ours(percent(idle)), ours(seconds_text(2 * m * stage.transfer_s)),
                          ours(bytes(stage.send_bytes)), ours(bytes(stage.activation_bytes)),
                          ours(seconds_text(stage.reduction_s))});
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
