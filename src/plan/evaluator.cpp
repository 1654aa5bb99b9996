// Fills a report from stage times, reductions and the memory model.
#include "plan/evaluator.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "base/text.h"
#include "plan/bounds.h"
#include "plan/published.h"
#include "plan/stage_times.h"

namespace millrace::plan {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

class Evaluation {
 public:
  Evaluation(const Plan& plan, const Problem& problem, const StageBytes& bytes, const std::optional<Bound>& bound)
      : plan_(plan), problem_(problem), bytes_(bytes), bound_(bound), times_(plan_times(plan, problem)) {}

  PlanReport run() {
    report_.schedule = plan_.schedule;
    report_.batch = problem_.batch;
    report_.pipelines = static_cast<int>(plan_.pipelines.size());
    for (const Pipeline& pipeline : plan_.pipelines) {
      report_.micro_batches = std::max(report_.micro_batches, pipeline.micro_batches);
    }
    report_.stopped_by = "complete";
    report_.node_crossings = times_.node_crossings;
    for (int p = 0; p < report_.pipelines; ++p) stages(p);
    iteration();
    traffic();
    memory();
    judge();
    return std::move(report_);
  }

 private:
  const Pipeline& pipeline(int p) const { return plan_.pipelines[static_cast<std::size_t>(p)]; }
  const std::vector<StageTimes>& times(int p) const { return times_.stages[static_cast<std::size_t>(p)]; }

  void stages(int p) {
    const ScheduleTraits& traits = schedule_traits(plan_.schedule);
    const auto& stages = pipeline(p).stages;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      const StageTimes& time = times(p)[s];
      StageReport row;
      row.pipeline = p;
      row.index = static_cast<int>(s);
      row.ops = stages[s].ops;
      row.devices = stages[s].devices;
      row.shares = stages[s].shares;
      row.forward_s = time.forward.value();
      row.backward_s = time.backward.value();
      row.transfer_s = time.transfer.value();
      row.reduction_s = time.reduction.value();
      row.send_bytes = time.sent.value();
      const std::int64_t m = pipeline(p).micro_batches;
      row.live_micro_batches = pipeline(p).warmup.empty()
                                   ? traits.live(m, static_cast<std::int64_t>(stages.size() - s))
                                   : std::min(m, static_cast<std::int64_t>(pipeline(p).warmup[s]) + 1);
      report_.stages.push_back(std::move(row));
    }
  }

  // Pipelines drain on their own; a reduction starts when its last owner has ended its last backward.
  void iteration() {
    const ScheduleTraits& traits = schedule_traits(plan_.schedule);
    std::vector<std::vector<Seconds>> backward_ends;
    Seconds compute_end, slowest, stage_sum;
    int count = 0;
    for (int p = 0; p < report_.pipelines; ++p) {
      std::vector<StageSeconds> seconds;
      for (const StageTimes& stage : times(p)) seconds.push_back(stage.seconds());
      const Seconds end = traits.iteration_time(seconds, pipeline(p).micro_batches);
      compute_end = std::max(compute_end, end);
      Seconds later;
      std::vector<Seconds> ends;
      for (const StageSeconds& stage : seconds) {
        ends.push_back(end - later);
        later += stage.backward;
        slowest = std::max(slowest, stage.total());
        stage_sum += stage.total();
        ++count;
      }
      backward_ends.push_back(std::move(ends));
    }
    Seconds end = compute_end, reduction_total;
    for (const Reduction& reduction : times_.reductions) {
      Seconds ready, busy;
      for (const StageRef& ref : reduction.stages) {
        const auto p = static_cast<std::size_t>(ref.pipeline), s = static_cast<std::size_t>(ref.stage);
        ready = std::max(ready, backward_ends[p][s]);
        busy = std::max(busy, times_.stages[p][s].reduction);  // a stage's reductions go one after the other
      }
      end = std::max(end, ready + busy);
      reduction_total += reduction.time;
    }
    report_.iteration_time_s = report_.makespan_s = end.value();
    report_.exposed_reduction_s = (end - compute_end).value();
    report_.bottleneck_s = slowest.value();
    report_.balance = count > 0 && stage_sum > Seconds{} ? slowest / stage_sum * count : 1.0;
    report_.throughput_samples_per_s = end > Seconds{} ? static_cast<double>(problem_.batch) / end.value() : 0.0;
    if (reduction_total > Seconds{}) {
      report_.hidden_communication.gradients = std::max(0.0, 1.0 - (end - compute_end) / reduction_total);
    }
    double busy = 0;
    int devices = 0;
    for (int p = 0; p < report_.pipelines; ++p) {
      for (std::size_t s = 0; s < times(p).size(); ++s) {
        busy += times(p)[s].busy.value() * static_cast<double>(pipeline(p).micro_batches);
        devices += static_cast<int>(pipeline(p).stages[s].devices.size());
      }
    }
    report_.bubble_fraction = end > Seconds{} ? std::max(0.0, 1.0 - busy / (devices * end.value())) : 0.0;
    const auto limiting = std::find_if(report_.stages.begin(), report_.stages.end(), [&](const StageReport& row) {
      return times(row.pipeline)[static_cast<std::size_t>(row.index)].seconds().total() == slowest;
    });
    limit(static_cast<std::size_t>(limiting - report_.stages.begin()));
  }

  // Names the longest operator of a stage as what limits the plan.
  void limit(std::size_t index) {
    const StageReport& row = report_.stages[index];
    const Stage& stage = pipeline(row.pipeline).stages[static_cast<std::size_t>(row.index)];
    const std::int64_t rows = times(row.pipeline)[static_cast<std::size_t>(row.index)].rows.front();
    Seconds longest(-1);
    OpId limiting = stage.ops.front();
    for (const OpId op : stage.ops) {
      const Seconds time = problem_.cost->op_time(op, rows, stage.devices[0]).total();
      if (time <= longest) continue;
      longest = time;
      limiting = op;
    }
    report_.limiting_stage = index;
    report_.limiting_op = problem_.graph->op(limiting).name;
    report_.limiting_op_s = longest.value();
  }

  // Activations and their gradients, once for each receiving stage; gradient sums by a ring: 2(n−1) times their size.
  void traffic() {
    std::int64_t bytes = 0;
    for (int p = 0; p < report_.pipelines; ++p) {
      for (const StageTimes& stage : times(p)) bytes += 2 * stage.received.value() * pipeline(p).micro_batches;
    }
    for (const Reduction& reduction : times_.reductions) {
      bytes += 2 * static_cast<std::int64_t>(reduction.devices.size() - 1) * reduction.bytes.value();
    }
    report_.bytes_injected = bytes;
  }

  void memory() {
    std::int64_t total = 0, ranks = 0;
    for (StageReport& row : report_.stages) {
      const Stage& stage = pipeline(row.pipeline).stages[static_cast<std::size_t>(row.index)];
      const std::vector<std::int64_t>& rows = times(row.pipeline)[static_cast<std::size_t>(row.index)].rows;
      for (std::size_t r = 0; r < rows.size(); ++r) {
        const StageFootprint& footprint = footprint_of(stage, rows[r]);
        const StageMemory memory = stage_memory(footprint, row.live_micro_batches);
        row.activation_bytes += footprint.per_slot.value();
        row.parameter_bytes = footprint.weights.value();
        total += memory.total().value();
        ++ranks;
        if (memory.total().value() > row.memory_bytes) {
          row.memory = memory;
          row.memory_bytes = memory.total().value();
        }
        check_limit(row, memory, stage.devices[r * static_cast<std::size_t>(stage.tensor_parallel)]);
      }
      report_.peak_memory_bytes = std::max(report_.peak_memory_bytes, row.memory_bytes);
    }
    report_.mean_memory_bytes = ranks > 0 ? total / ranks : 0;
    const double gibibytes = static_cast<double>(report_.peak_memory_bytes) / kGiB;
    report_.memory_efficiency = gibibytes > 0 ? report_.throughput_samples_per_s / gibibytes : 0.0;
  }

  // Equal pipelines share their lists of operators: the list itself is the key.
  const StageFootprint& footprint_of(const Stage& stage, std::int64_t rows) {
    const auto [entry, is_new] = footprints_.try_emplace({stage.ops.data(), stage.recompute.data(), rows});
    if (is_new) entry->second = bytes_.footprint(stage.ops, rows, stage.recompute);
    return entry->second;
  }

  // The stage that is furthest over its limit is named, with the limit that it would need.
  void check_limit(const StageReport& row, const StageMemory& memory, int device) {
    const auto limit = problem_.memory_of(device);
    if (!limit || memory.total() <= *limit) return;
    report_.feasible = false;
    const std::int64_t over = memory.total().value() - limit->value();
    if (over <= furthest_over_) return;
    furthest_over_ = over;
    report_.why_not = fmt::format(
        "stage {} of pipeline {} needs {} ({} bytes) on device {}, which has {}: weights {}, gradients {}, optimizer "
        "{}, "
        "{} live micro-batches {}, workspace {}, buffers {}",
        row.index, row.pipeline, format(memory.total()), memory.total().value(), device, format(*limit),
        format(memory.weights), format(memory.gradients), format(memory.optimizer), row.live_micro_batches,
        format(memory.activations), format(memory.workspace), format(memory.buffers));
  }

  void judge() {
    report_.objective = name(problem_.objective);
    report_.objective_unit = unit(problem_.objective);
    if (is_published(problem_.objective)) {
      judge_published();
    } else {
      report_.objective_value = value_of(problem_.objective, report_);
    }
    if (!bound_) return;
    report_.bound = bound_->value;
    report_.bound_source = bound_->source;
    if (report_.objective_value) {
      report_.optimality_gap = optimality_gap(problem_.objective, *report_.objective_value, bound_->value);
    }
  }

  // The published planner's own rules decide, its own memory formula included.
  void judge_published() {
    const Judgement judgement = plan::judge(plan_, problem_);
    if (std::isfinite(judgement.value)) report_.objective_value = judgement.value;  // else why_not tells the rule
    report_.feasible = judgement.why_not.empty();
    report_.why_not = judgement.why_not;
    report_.bottleneck_s = judgement.bottleneck;
    limit(static_cast<std::size_t>(judgement.limiting_stage));  // of the first pipeline, whose stages come first
    report_.peak_memory_bytes = std::llround(judgement.memory_bytes);
  }

  const Plan& plan_;
  const Problem& problem_;
  const StageBytes& bytes_;
  const std::optional<Bound>& bound_;
  PlanTimes times_;
  std::map<std::tuple<const OpId*, const OpId*, std::int64_t>, StageFootprint> footprints_;
  PlanReport report_;
  std::int64_t furthest_over_ = 0;  // bytes
};

}  // namespace

ClosedFormEvaluator::ClosedFormEvaluator(const Problem& problem, const StageBytes* bytes)
    : problem_(&problem), bytes_(bytes) {
  schedule_traits(problem.schedule);
  if (bytes_ != nullptr) return;
  counted_ = std::make_unique<AnalyticBytes>(*problem.graph, problem.sizes);
  bytes_ = counted_.get();
}

const std::optional<Bound>& ClosedFormEvaluator::bound() {
  if (!bound_) bound_ = proven_bound(*problem_, counted_ ? Judge::closed_form : Judge::measured);
  return *bound_;
}

PlanReport ClosedFormEvaluator::evaluate(const Plan& plan) {
  return Evaluation(plan, *problem_, *bytes_, bound()).run();
}

}  // namespace millrace::plan
