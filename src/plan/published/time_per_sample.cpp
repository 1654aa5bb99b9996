// The objective time_per_sample: the slowest stage of a plan by Piper's formula.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/limits.h"
#include "plan/published.h"
#include "plan/published/machine.h"
#include "plan/published/piper.h"

namespace millrace::plan {
namespace {

class PiperFormula {
 public:
  PiperFormula(const Pipeline& pipeline, const Problem& problem)
      : pipeline_(pipeline),
        problem_(problem),
        question_(piper_question(problem)),
        stage_of_(static_cast<std::size_t>(problem.graph->size()), 0),
        recomputed_(stage_of_.size(), false) {
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
      for (const OpId op : pipeline.stages[s].ops) stage_of_[static_cast<std::size_t>(op)] = s;
      for (const OpId op : pipeline.stages[s].recompute) recomputed_[static_cast<std::size_t>(op)] = true;
    }
  }

  Judgement run() {
    border_seconds();
    std::int64_t replicas = 0, devices = 0;
    for (std::size_t s = pipeline_.stages.size(); s-- > 0;) {
      const Stage& stage = pipeline_.stages[s];
      const auto d = static_cast<std::int64_t>(stage.shares.size());
      replicas += d;
      devices += static_cast<std::int64_t>(stage.devices.size());
      if (question_.batch % d != 0) {
        fault(fmt::format("stage {}: {} replicas do not divide the {} micro-batches of the batch", s, d,
                          question_.batch));
      }
      add_stage(s, d, piper_live(replicas, d));
    }
    if (replicas > question_.most_replicas()) {
      fault(fmt::format("{} replicas in all stages; Piper's formula allows {}", replicas, question_.most_replicas()));
    }
    if (devices > question_.devices) fault(fmt::format("{} devices of {}", devices, question_.devices));
    judgement_.bottleneck = judgement_.value < kNever ? judgement_.value : 0;
    return std::move(judgement_);
  }

 private:
  void fault(std::string text) {
    if (judgement_.why_not.empty()) judgement_.why_not = std::move(text);
  }

  const TensorParallelModel::Variant* variant(OpId op) const {
    const auto i = static_cast<std::size_t>(op);
    const PiperVariants variants = piper_variants(*question_.model, op, pipeline_.stages[stage_of_[i]].tensor_parallel);
    return recomputed_[i] ? variants.recompute : variants.plain;
  }

  // Each edge between stages is paid at both ends, with the synchronisation of that end's tensor-parallel devices.
  void border_seconds() {
    borders_.assign(pipeline_.stages.size(), 0);
    for (const TensorParallelModel::Edge& edge : question_.model->edges) {
      const std::size_t from = stage_of_[static_cast<std::size_t>(edge.from)];
      const std::size_t to = stage_of_[static_cast<std::size_t>(edge.to)];
      if (from == to) continue;
      const auto *sender = variant(edge.from), *receiver = variant(edge.to);
      if (sender == nullptr || receiver == nullptr) continue;  // told stage by stage
      borders_[from] += 2 * (edge.bytes + piper_sync(sender->sync_backward, edge.to)) / question_.bytes_per_second;
      borders_[to] += 2 * (edge.bytes + piper_sync(receiver->sync_forward, edge.from)) / question_.bytes_per_second;
    }
  }

  void add_stage(std::size_t s, std::int64_t replicas, std::int64_t live) {
    const Stage& stage = pipeline_.stages[s];
    double seconds = 0, parameters = 0, memory = 0;
    for (const OpId op : stage.ops) {
      const TensorParallelModel::Variant* figures = variant(op);
      if (figures == nullptr) {
        fault(fmt::format("stage {}: the file has no {}figures of operator '{}' for {} tensor-parallel devices", s,
                          recomputed_[static_cast<std::size_t>(op)] ? "recomputed " : "", problem_.graph->op(op).name,
                          stage.tensor_parallel));
        judgement_.value = kNever;
        return;
      }
      seconds += figures->time_per_sample / question_.speed;
      parameters += figures->parameter_bytes;
      memory += figures->memory_a * static_cast<double>(live) + figures->memory_b;
    }
    const double time = piper_stage(seconds + borders_[s], parameters, replicas, question_);
    if (time >= judgement_.value) {
      judgement_.value = time;
      judgement_.limiting_stage = static_cast<int>(s);
    }
    judgement_.memory_bytes = std::max(judgement_.memory_bytes, memory);
    if (memory > question_.memory_bytes) {
      fault(fmt::format("stage {} needs {:.0f} bytes for {} live micro-batches; a device has {:.0f}", s, memory, live,
                        question_.memory_bytes));
    }
  }

  const Pipeline& pipeline_;
  const Problem& problem_;
  PiperQuestion question_;
  std::vector<std::size_t> stage_of_;  // by operator
  std::vector<bool> recomputed_;
  std::vector<double> borders_;  // seconds on one replica, by stage
  Judgement judgement_{};
};

}  // namespace

PiperQuestion piper_question(const Problem& problem) {
  const Carried* carried = problem.graph->carried();
  const auto* model = carried != nullptr ? std::get_if<TensorParallelModel>(&carried->extra) : nullptr;
  if (model == nullptr) {
    throw InvalidInput(
        fmt::format("objective {}: graph '{}' says no costs by tensor-parallel degree; allowed: graphs "
                    "read from Piper's JSON files",
                    name(problem.objective), problem.graph->name()));
  }
  const EqualDevices devices = equal_devices(problem);
  return {.model = model,
          .devices = devices.count,
          .speed = devices.speed,
          .bytes_per_second = slowest_link(problem),
          .memory_bytes = devices.memory_bytes.value_or(kNever),
          .batch = problem.batch};
}

PiperVariants piper_variants(const TensorParallelModel& model, OpId op, int degree) {
  PiperVariants variants;
  for (const TensorParallelModel::Degree& of : model.ops[static_cast<std::size_t>(op)]) {
    if (of.degree != degree) continue;
    for (const TensorParallelModel::Variant& variant : of.variants) {
      if (variant.id == "vanilla") variants.plain = &variant;
    }
    if (variants.plain == nullptr) variants.plain = &of.variants.front();
    for (const TensorParallelModel::Variant& variant : of.variants) {
      if (&variant != variants.plain && variants.recompute == nullptr) variants.recompute = &variant;
    }
  }
  return variants;
}

double piper_sync(const std::vector<std::pair<OpId, double>>& sync, OpId neighbour) {
  for (const auto& [op, bytes] : sync) {
    if (op == neighbour) return bytes;
  }
  return 0;
}

Judgement judge_time_per_sample(const Plan& plan, const Problem& problem) {
  Judgement judgement = PiperFormula(plan.pipelines[0], problem).run();
  if (plan.pipelines.size() > 1) {
    judgement.why_not =
        fmt::format("{} pipelines; Piper's formula knows one, with replicas of its stages", plan.pipelines.size());
  }
  return judgement;
}

double bound_time_per_sample(const Problem& problem) {
  // A stage within T on d·t devices does at least its work, in seconds × devices, on them: no plan has T below all
  // work at the cheapest degree of each operator on all devices.
  const PiperQuestion question = piper_question(problem);
  double work = 0;
  for (const auto& degrees : question.model->ops) {
    double least = kNever;
    for (const TensorParallelModel::Degree& degree : degrees) {
      for (const TensorParallelModel::Variant& variant : degree.variants) {
        least = std::min(least, variant.time_per_sample * degree.degree);
      }
    }
    work += least;
  }
  return work / question.speed / question.devices;
}

}  // namespace millrace::plan
