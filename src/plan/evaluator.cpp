// Fills a report from stage times, reductions and the memory model.
#include "plan/evaluator.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "base/limits.h"
#include "base/text.h"
#include "plan/bounds.h"
#include "plan/kept_weights.h"
#include "plan/loads.h"
#include "plan/published.h"
#include "plan/stage_times.h"

namespace millrace::plan {
namespace {

class Evaluation {
 public:
  Evaluation(const Plan& plan, const Problem& problem, const StageBytes& bytes, const std::optional<Bound>& bound)
      : plan_(plan), problem_(problem), bytes_(bytes), bound_(bound), times_(plan_times(plan, problem)) {
    if (problem.tensor != nullptr) parts_ = problem.tensor->parts(plan);
  }

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
  const std::vector<int>& depths(int p) const {
    return times_.cuts.cuts[static_cast<std::size_t>(times_.cuts.of_pipeline[static_cast<std::size_t>(p)])]
        .depth_from_end;
  }
  const std::vector<StageTimes>& times(int p) const { return times_.stages[static_cast<std::size_t>(p)]; }

  void stages(int p) {
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
      row.tensor_forward_s = time.tensor_forward.value();
      row.tensor_backward_s = time.tensor_backward.value();
      row.reduction_s = time.reduction.value();
      row.send_bytes = time.sent.value();
      report_.stages.push_back(std::move(row));
    }
  }

  // Pipelines drain on their own; a reduction starts when its last owner has ended its last backward.
  void iteration() {
    std::vector<std::vector<Seconds>> backward_ends;
    Seconds compute_end;
    const Loads loads(plan_, times_, problem_.cluster->size(), report_.micro_batches);
    for (int p = 0; p < report_.pipelines; ++p) {
      std::vector<StageSeconds> seconds;
      for (const StageTimes& stage : times(p)) seconds.push_back(stage.seconds());
      const Seconds end = pipeline_time(loads, p, seconds);
      compute_end = std::max(compute_end, end);
      Seconds later;
      std::vector<Seconds> ends;
      for (const StageSeconds& stage : seconds) {
        ends.push_back(end - later);
        later += stage.backward;
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
    report_.bottleneck_s = loads.most().value();
    report_.balance = loads.mean() > Seconds{} ? loads.most() / loads.mean() : 1.0;
    report_.throughput_samples_per_s = end > Seconds{} ? static_cast<double>(problem_.batch) / end.value() : 0.0;
    if (reduction_total > Seconds{}) {
      report_.hidden_communication.gradients = std::max(0.0, 1.0 - (end - compute_end) / reduction_total);
    }
    double busy = 0;
    for (int p = 0; p < report_.pipelines; ++p) {
      for (const StageTimes& stage : times(p)) {
        busy += stage.busy.value() * static_cast<double>(pipeline(p).micro_batches);
      }
    }
    report_.bubble_fraction = end > Seconds{} ? std::max(0.0, 1.0 - busy / (loads.devices() * end.value())) : 0.0;
    const auto seconds = [&](const StageReport& row) {
      return times(row.pipeline)[static_cast<std::size_t>(row.index)].seconds().total();
    };
    // The first of the slowest stages, of those on the busiest devices where devices hold several.
    const auto limiting =
        std::max_element(report_.stages.begin(), report_.stages.end(), [&](const auto& a, const auto& b) {
          return std::pair(loads.of(a.devices.front()), seconds(a)) <
                 std::pair(loads.of(b.devices.front()), seconds(b));
        });
    limit(static_cast<std::size_t>(limiting - report_.stages.begin()));
  }

  // Stages that share devices take turns there: the busiest device, and what the schedule waits beside it.
  Seconds pipeline_time(const Loads& loads, int p, const std::vector<StageSeconds>& seconds) const {
    const ScheduleTraits& traits = schedule_traits(plan_.schedule);
    const auto m = pipeline(p).micro_batches;
    if (!loads.shared()) return traits.iteration_time(seconds, m);
    std::map<int, Seconds> own;  // by device: of this pipeline
    Seconds most, busiest;
    const auto& stages = pipeline(p).stages;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      const int device = stages[s].devices.front();
      busiest = std::max(busiest, own[device] += seconds[s].total());
      most = std::max(most, loads.of(device));
    }
    const Seconds work = most * static_cast<double>(report_.micro_batches);
    if (traits.shared_fill == nullptr) return work;
    return work + traits.shared_fill(seconds, static_cast<std::int64_t>(own.size()), busiest);
  }

  // Names the longest operator of a stage as what limits the plan.
  void limit(std::size_t index) {
    const StageReport& row = report_.stages[index];
    const Stage& stage = pipeline(row.pipeline).stages[static_cast<std::size_t>(row.index)];
    const std::int64_t rows = times(row.pipeline)[static_cast<std::size_t>(row.index)].rows.front();
    Seconds longest(-1);
    OpId limiting = stage.ops.front();
    for (const OpId op : stage.ops) {
      const double part = parts_.empty() || parts_[index] == nullptr ? 1.0 : parts_[index]->share(op, 0);
      const Seconds time = part * problem_.cost->op_time(op, rows, stage.devices[0]).total();
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
      for (const StageTimes& stage : times(p))
        bytes += (2 * stage.received + stage.exchanged).value() * pipeline(p).micro_batches;
    }
    for (const Reduction& reduction : times_.reductions) {
      bytes += 2 * static_cast<std::int64_t>(reduction.devices.size() - 1) * reduction.bytes.value();
    }
    report_.bytes_injected = bytes;
  }

  // A stage on one of its devices.
  struct Part {
    std::size_t row = 0;  // in report_.stages
    const StageFootprint* footprint = nullptr;
  };

  void memory() {
    std::vector<std::vector<Part>> held(static_cast<std::size_t>(problem_.cluster->size()));
    for (std::size_t i = 0; i < report_.stages.size(); ++i) {
      StageReport& row = report_.stages[i];
      const Stage& stage = pipeline(row.pipeline).stages[static_cast<std::size_t>(row.index)];
      const std::vector<std::int64_t>& rows = times(row.pipeline)[static_cast<std::size_t>(row.index)].rows;
      const std::shared_ptr<const StageParts> parts = parts_.empty() ? nullptr : parts_[i];
      const std::size_t shards = parts == nullptr ? 1 : static_cast<std::size_t>(parts->size());
      for (std::size_t r = 0; r < rows.size(); ++r) {
        for (std::size_t shard = 0; shard < shards; ++shard) {
          const StageFootprint& footprint = footprint_of(stage, parts, shard, rows[r]);
          row.activation_bytes += footprint.per_slot.value();
          row.parameter_bytes = std::max(row.parameter_bytes, footprint.weights.value());
          const int device = stage.devices[r * static_cast<std::size_t>(stage.tensor_parallel) + shard];
          held[static_cast<std::size_t>(device)].push_back({i, &footprint});
        }
      }
    }
    std::int64_t total = 0, ranks = 0;
    for (std::size_t device = 0; device < held.size(); ++device) {
      if (held[device].empty()) continue;
      total += device_memory(static_cast<int>(device), held[device]).value();
      ++ranks;
    }
    report_.mean_memory_bytes = ranks > 0 ? total / ranks : 0;
    const double gibibytes = static_cast<double>(report_.peak_memory_bytes) / kGiB;
    report_.memory_efficiency = gibibytes > 0 ? report_.throughput_samples_per_s / gibibytes : 0.0;
  }

  // What the stages of one device hold together; one computes at a time, so the largest workspace serves all.
  Bytes device_memory(int device, const std::vector<Part>& parts) {
    StageMemory all;
    for (const Part& part : parts) {
      const StageMemory fixed = stage_memory(*part.footprint, 0);
      all.weights += fixed.weights;
      all.gradients += fixed.gradients;
      all.optimizer += fixed.optimizer;
      all.buffers += fixed.buffers;
      all.workspace = std::max(all.workspace, fixed.workspace);
    }
    std::vector<std::int64_t> live = live_micro_batches(device, parts, all.total());
    all.activations = activations(parts, live);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      StageReport& row = report_.stages[parts[i].row];
      StageMemory memory = stage_memory(*parts[i].footprint, live[i]);
      const Bytes copies = weight_copies(plan_.schedule, live[i]) * parts[i].footprint->weights;
      memory.weights += copies;
      all.weights += copies;
      row.live_micro_batches = std::max(row.live_micro_batches, live[i]);
      if (memory.total().value() <= row.memory_bytes) continue;
      row.memory = memory;
      row.memory_bytes = memory.total().value();
    }
    report_.peak_memory_bytes = std::max(report_.peak_memory_bytes, all.total().value());
    check_limit(device, parts, all, *std::max_element(live.begin(), live.end()));
    return all.total();
  }

  HeldStage held_stage(const Part& part) const {
    const StageReport& row = report_.stages[part.row];
    return {pipeline(row.pipeline).micro_batches, row.index,
            static_cast<std::int64_t>(pipeline(row.pipeline).stages.size()), part.footprint->per_slot};
  }

  std::int64_t live_of(const StageReport& row, const HeldStage& stage, const ScheduleTraits& traits) const {
    if (!problem_.live_by_depth) return traits.live(stage.micro_batches, stage.stages - stage.index, stage.stages);
    const std::vector<int>& depth = depths(row.pipeline);
    return traits.live(stage.micro_batches, depth[static_cast<std::size_t>(row.index)] + 1,
                       *std::max_element(depth.begin(), depth.end()) + 1);
  }

  // By part. `fixed`: what the device holds beside activations.
  std::vector<std::int64_t> live_micro_batches(int device, const std::vector<Part>& parts, Bytes fixed) const {
    const ScheduleTraits& traits = schedule_traits(plan_.schedule);
    std::vector<std::int64_t> live;
    Bytes one;
    for (const Part& part : parts) {
      const StageReport& row = report_.stages[part.row];
      const HeldStage stage = held_stage(part);
      one += stage.per_slot;
      const std::vector<int>& warmup = pipeline(row.pipeline).warmup;
      if (warmup.empty()) {
        live.push_back(live_of(row, stage, traits));
      } else {  // a stage that warms up by w counts as one with w behind it
        live.push_back(traits.live(stage.micro_batches, warmup[static_cast<std::size_t>(row.index)] + 1,
                                   *std::max_element(warmup.begin(), warmup.end()) + 1));
      }
    }
    const auto limit = problem_.memory_of(device);
    if (traits.adapts_to_memory && limit && one > Bytes(0)) {
      const std::int64_t room = (limit->value() - fixed.value()) / one.value();
      for (std::int64_t& count : live) count = std::clamp<std::int64_t>(room, 1, count);
    }
    return live;
  }

  // Sets `live` where the schedule knows what the stages of a device keep together.
  Bytes activations(const std::vector<Part>& parts, std::vector<std::int64_t>& live) const {
    const ScheduleTraits& traits = schedule_traits(plan_.schedule);
    Bytes bytes;
    if (traits.kept_together == nullptr) {
      for (std::size_t i = 0; i < parts.size(); ++i) bytes += live[i] * parts[i].footprint->per_slot;
      return bytes;
    }
    for (std::size_t begin = 0, end = 0; begin < parts.size(); begin = end) {
      std::vector<HeldStage> column;
      const int of = report_.stages[parts[begin].row].pipeline;
      for (; end < parts.size() && report_.stages[parts[end].row].pipeline == of; ++end) {
        column.push_back(held_stage(parts[end]));
      }
      bytes += traits.kept_together(column);
      for (std::size_t i = begin; i < end; ++i) {  // of each stage, when the others keep nothing
        std::vector<HeldStage> alone = column;
        for (std::size_t j = 0; j < alone.size(); ++j) alone[j].per_slot = Bytes(j == i - begin ? 1 : 0);
        live[i] = traits.kept_together(alone).value();
      }
    }
    return bytes;
  }

  // Equal pipelines share their lists of operators: the list itself is the key.
  const StageFootprint& footprint_of(const Stage& stage, const std::shared_ptr<const StageParts>& parts,
                                     std::size_t shard, std::int64_t rows) {
    const auto [entry, is_new] =
        footprints_.try_emplace({stage.ops.data(), stage.recompute.data(), parts.get(), shard, rows});
    if (!is_new) return entry->second;
    entry->second = parts == nullptr ? bytes_.footprint(stage.ops, rows, stage.recompute)
                                     : bytes_.part_footprint(parts, shard, stage.ops, rows, stage.recompute);
    const std::int64_t owners = problem_.sizes.shard_optimizer ? owners_of(stage) : 1;
    entry->second.optimizer = Bytes((entry->second.optimizer.value() + owners - 1) / owners);
    return entry->second;
  }

  // At least so many devices hold each parameter of a stage: all that have the same operators, and one of each pipeline
  // that cuts them otherwise.
  std::int64_t owners_of(const Stage& stage) const {
    std::int64_t owners = 0;
    for (const Pipeline& pipeline : plan_.pipelines) {
      const auto same = std::find_if(pipeline.stages.begin(), pipeline.stages.end(),
                                     [&](const Stage& other) { return other.ops == stage.ops; });
      owners += same == pipeline.stages.end() ? 1 : static_cast<std::int64_t>(same->devices.size());
    }
    return owners;
  }

  // The device that is furthest over its limit is named by its stages, with the limit that it would need.
  void check_limit(int device, const std::vector<Part>& parts, const StageMemory& memory, std::int64_t live) {
    const auto limit = problem_.memory_of(device);
    if (!limit || memory.total() <= *limit) return;
    report_.feasible = false;
    const std::int64_t over = memory.total().value() - limit->value();
    if (over <= furthest_over_) return;
    furthest_over_ = over;
    std::vector<std::string> names;
    for (const Part& part : parts) {
      const StageReport& row = report_.stages[part.row];
      names.push_back(fmt::format("stage {} of pipeline {}", row.index, row.pipeline));
    }
    report_.why_not = fmt::format(
        "{} need{} {} ({} bytes) on device {}, which has {}: weights {}, gradients {}, optimizer {}, {} live "
        "micro-batches {}, workspace {}, buffers {}",
        join(names, " and "), parts.size() == 1 ? "s" : "", format(memory.total()), memory.total().value(), device,
        format(*limit), format(memory.weights), format(memory.gradients), format(memory.optimizer), live,
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
      report_.bound = bound_at(problem_.objective, *report_.objective_value, bound_->value);
      report_.optimality_gap = optimality_gap(problem_.objective, *report_.objective_value, *report_.bound);
      if (report_.optimality_gap.value_or(0) >= 0) return;
      report_.bound.reset();  // it is not proven for plans whose devices hold several stages
      report_.bound_source.clear();
      report_.optimality_gap.reset();
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
  std::vector<std::shared_ptr<const StageParts>> parts_;  // by flat stage, as rows of the report; empty: none has any
  std::map<std::tuple<const OpId*, const OpId*, const StageParts*, std::size_t, std::int64_t>, StageFootprint>
      footprints_;
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
