// Fills the closed forms with the numbers of a report.
#include "planner/explain.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "plan/closed_form.h"
#include "plan/published.h"

namespace millrace::planner {
namespace {

std::string seconds(double value) { return fmt::format("{:.9g} s", value); }

// The stages of one pipeline as the closed forms see them: transfers are part of forward and backward.
std::vector<plan::StageSeconds> stage_seconds(const plan::PlanReport& report, int pipeline) {
  std::vector<plan::StageSeconds> stages;
  for (const plan::StageReport& stage : report.stages) {
    if (stage.pipeline != pipeline) continue;
    stages.push_back({Seconds(stage.forward_s + stage.tensor_forward_s + stage.transfer_s),
                      Seconds(stage.backward_s + stage.tensor_backward_s + stage.transfer_s)});
  }
  return stages;
}

bool equal(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); }

// The steady part and the fill of one pipeline.
struct Form {
  double sum = 0, slowest = 0, forward = 0, backward = 0;
  bool even = true;

  explicit Form(const std::vector<plan::StageSeconds>& stages) {
    for (const plan::StageSeconds& stage : stages) {
      sum += stage.total().value();
      slowest = std::max(slowest, stage.total().value());
      forward = std::max(forward, stage.forward.value());
      backward = std::max(backward, stage.backward.value());
    }
    for (const plan::StageSeconds& stage : stages) {
      even = even && equal(stage.forward.value(), forward) && equal(stage.backward.value(), backward);
    }
  }
};

std::string pipeline_form(const plan::PlanReport& report, const std::vector<plan::StageSeconds>& stages) {
  const Form form(stages);
  const std::int64_t m = report.micro_batches;
  if (form.even) {
    return fmt::format("(m + p - 1) (F + B) = ({} + {} - 1) x ({} + {})", m, stages.size(), seconds(form.forward),
                       seconds(form.backward));
  }
  if (plan::schedule_traits(report.schedule).splits_bottleneck) {
    return fmt::format("sum(F + B) + (m - 1) (max F + max B) = {} + {} x ({} + {})", seconds(form.sum), m - 1,
                       seconds(form.forward), seconds(form.backward));
  }
  return fmt::format("sum(F + B) + (m - 1) max(F + B) = {} + {} x {}", seconds(form.sum), m - 1, seconds(form.slowest));
}

// The pipeline that ends last, and when.
std::pair<int, double> slowest_pipeline(const plan::PlanReport& report) {
  std::pair<int, double> slowest{0, -1};
  for (int p = 0; p < report.pipelines; ++p) {
    const auto stages = stage_seconds(report, p);
    const double end = plan::schedule_traits(report.schedule).iteration_time(stages, report.micro_batches).value();
    if (end > slowest.second) slowest = {p, end};
  }
  return slowest;
}

std::string iteration_form(const plan::PlanReport& report) {
  if (plan::is_published(report)) return "";
  const auto [pipeline, end] = slowest_pipeline(report);
  if (!equal(end + report.exposed_reduction_s, report.iteration_time_s)) return "";
  std::string text = "iteration: " + pipeline_form(report, stage_seconds(report, pipeline));
  if (report.exposed_reduction_s > 0) {
    text += fmt::format(" + {} of gradient reduction that nothing hides", seconds(report.exposed_reduction_s));
  }
  text += fmt::format(" = {}", seconds(report.iteration_time_s));
  return report.pipelines > 1 ? fmt::format("{} (pipeline {})", text, pipeline) : text;
}

std::string objective_form(const plan::PlanReport& report) {
  if (!report.objective_value || report.objective == "throughput") return "";
  const std::string value =
      fmt::format("{}: {:.9g} {}", report.objective, *report.objective_value, report.objective_unit);
  if (report.objective == "bottleneck") {
    return fmt::format("{} = {} micro-batches x {} / {} samples", value, report.micro_batches,
                       seconds(report.bottleneck_s), report.batch);
  }
  if (report.objective == "memory_efficiency") {
    return fmt::format("{} = {:.9g} samples/s / {} of the fullest rank", value, report.throughput_samples_per_s,
                       format(Bytes(report.peak_memory_bytes)));
  }
  if (report.objective == "communication") return value + ": activations, their gradients, and reductions by a ring";
  return fmt::format("{}, by the published formula; its fullest stage: {:.9g}", value, report.bottleneck_s);
}

}  // namespace

std::string shortest(double value) {
  std::string text = fmt::format("{:g}", value);
  if (std::stod(text) != value) text = fmt::format("{}", value);
  const auto exponent = text.find("e+");
  if (exponent != std::string::npos) text.erase(exponent + 1, text[exponent + 2] == '0' ? 2 : 1);
  return text;
}

std::string bottleneck_line(const plan::PlanReport& report) {
  const plan::StageReport& stage = report.stages[report.limiting_stage];
  if (plan::is_published(report)) {
    return fmt::format("bottleneck: {} (stage {} of pipeline {}: {:.9g} {} by the published formula)",
                       report.limiting_op, stage.index, stage.pipeline, report.bottleneck_s, report.objective_unit);
  }
  const double compute = stage.forward_s + stage.backward_s;
  const double all = compute + stage.tensor_forward_s + stage.tensor_backward_s + 2 * stage.transfer_s;
  std::string text = fmt::format("bottleneck: {} (stage {} of pipeline {}: {} for a micro-batch", report.limiting_op,
                                 stage.index, stage.pipeline, format(Seconds(all)));
  if (compute > 0) {
    text += fmt::format(", {:.0f} % of its compute in this operator", 100 * report.limiting_op_s / compute);
  }
  return text + ")";
}

std::string bound_line(const plan::PlanReport& report) {
  if (!report.bound) return "bound: none is known";
  std::string text =
      fmt::format("bound: {} {} ({})", shortest(*report.bound), report.objective_unit, report.bound_source);
  if (report.optimality_gap) text += fmt::format("; gap {:.3g} %", 100 * *report.optimality_gap);
  return text;
}

std::string search_line(const plan::PlanReport& report) {
  std::string text = fmt::format("search: {}", report.partitioner);
  if (!report.order.empty()) text += fmt::format(", order {}", report.order);
  text += fmt::format(", {} in {}", report.stopped_by == "complete" ? "complete" : "stopped by " + report.stopped_by,
                      format(Seconds(report.planning_time_s)));
  return report.certificate.empty() ? text : text + "; found " + report.certificate;
}

std::vector<std::string> arithmetic(const plan::PlanReport& report) {
  std::vector<std::string> lines;
  for (std::string line : {iteration_form(report), objective_form(report)}) {
    if (!line.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace millrace::planner
