// The rules of a plan: cover, shares, devices and rows; the order of stages is checked in stage_order.cpp.
#include "plan/validate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "base/count.h"
#include "base/errors.h"
#include "base/text.h"
#include "plan/rows.h"
#include "plan/stage_order.h"

namespace millrace::plan {
namespace {

constexpr double kShareTolerance = 1e-6;  // shares are written with few digits: 0.333333 three times is 1

// "n6", "n6, n7 and 12 more".
std::string name_some(const Graph& graph, std::span<const OpId> ops) {
  constexpr std::size_t kShown = 5;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(kShown, ops.size()); ++i) names.push_back(graph.op(ops[i]).name);
  const std::string more = ops.size() > kShown ? fmt::format(" and {} more", ops.size() - kShown) : "";
  return join(names) + more;
}

class Validation {
 public:
  Validation(const Plan& plan, const Graph& graph, const Limits& limits)
      : plan_(plan), graph_(graph), limits_(limits) {}

  std::vector<Violation> run() {
    if (!plan_.graph_digest.empty() && plan_.graph_digest != graph_.digest()) {
      add(Fault::other_graph, fmt::format("the plan is for graph {} of model '{}'; this is graph {} of '{}'",
                                          plan_.graph_digest, plan_.model, graph_.digest(), graph_.name()));
      return std::move(violations_);  // its operators mean nothing here
    }
    if (plan_.pipelines.empty()) add(Fault::no_stages, "the plan has no pipelines");
    for (std::size_t p = 0; p < plan_.pipelines.size(); ++p) check_pipeline(static_cast<int>(p));
    check_shares();
    check_devices();
    return std::move(violations_);
  }

 private:
  void add(Fault fault, std::string text) { violations_.push_back({fault, std::move(text)}); }

  void check_pipeline(int index) {
    const Pipeline& pipeline = plan_.pipelines[static_cast<std::size_t>(index)];
    if (pipeline.stages.empty()) return add(Fault::no_stages, fmt::format("pipeline {} has no stages", index));
    if (pipeline.micro_batches < 1) {
      add(Fault::micro_batches,
          fmt::format("pipeline {} has {} micro-batches; allowed: at least 1", index, pipeline.micro_batches));
    }
    const bool warmup_fits = pipeline.warmup.empty() || pipeline.warmup.size() == pipeline.stages.size();
    if (!warmup_fits || std::any_of(pipeline.warmup.begin(), pipeline.warmup.end(), [](int w) { return w < 0; })) {
      add(Fault::warmup, fmt::format("pipeline {}: warmup needs one number, at least 0, for each of its {} stages",
                                     index, pipeline.stages.size()));
    }
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) check_stage(index, static_cast<int>(s));
    const bool known = std::any_of(sound_.begin(), sound_.end(), [&](const Pipeline* other) {
      return std::equal(pipeline.stages.begin(), pipeline.stages.end(), other->stages.begin(), other->stages.end(),
                        [](const Stage& a, const Stage& b) { return a.ops == b.ops; });
    });
    if (!known && covers(index) && in_order(index)) sound_.push_back(&pipeline);
  }

  void check_stage(int pipeline, int index) {
    const Stage& stage = plan_.pipelines[static_cast<std::size_t>(pipeline)].stages[static_cast<std::size_t>(index)];
    const std::string where = fmt::format("pipeline {}, stage {}", pipeline, index);
    if (stage.ops.empty()) add(Fault::empty_stage, where + " has no operators");
    if (stage.devices.empty()) add(Fault::device_count, where + " has no devices");
    const bool divides = stage.tensor_parallel >= 1 &&
                         stage.devices.size() % static_cast<std::size_t>(std::max(1, stage.tensor_parallel)) == 0;
    if (!divides) {
      return add(Fault::device_count, fmt::format("{}: {} devices do not divide into replicas of {}", where,
                                                  stage.devices.size(), stage.tensor_parallel));
    }
    const std::size_t replicas = stage.devices.size() / static_cast<std::size_t>(stage.tensor_parallel);
    if (stage.shares.size() != replicas) {
      add(Fault::shares, fmt::format("{} has {} shares for {} replicas", where, stage.shares.size(), replicas));
    } else if (replicas > 0) {
      check_sum(stage.shares, where);
    }
  }

  // Whether every operator is in exactly one stage of the pipeline; says which are not.
  bool covers(int index) {
    const Pipeline& pipeline = plan_.pipelines[static_cast<std::size_t>(index)];
    std::vector<int> times(static_cast<std::size_t>(graph_.size()), 0);
    std::vector<OpId> missing, repeated;
    bool known = true;
    for (const Stage& stage : pipeline.stages) {
      for (const OpId op : stage.ops) {
        if (op < 0 || op >= graph_.size()) {
          add(Fault::unknown_operator,
              fmt::format("pipeline {} names operator number {}; the graph has {}", index, op, graph_.size()));
          known = false;
        } else {
          ++times[static_cast<std::size_t>(op)];
        }
      }
    }
    for (OpId op = 0; op < graph_.size(); ++op) {
      if (times[static_cast<std::size_t>(op)] == 0) missing.push_back(op);
      if (times[static_cast<std::size_t>(op)] > 1) repeated.push_back(op);
    }
    if (!missing.empty()) {
      add(Fault::missing_operator, fmt::format("pipeline {}: in no stage: {}", index, name_some(graph_, missing)));
    }
    if (!repeated.empty()) {
      add(Fault::repeated_operator,
          fmt::format("pipeline {}: in more than one stage, or twice in one: {}", index, name_some(graph_, repeated)));
    }
    return known && missing.empty() && repeated.empty();
  }

  bool in_order(int index) {
    const Pipeline& pipeline = plan_.pipelines[static_cast<std::size_t>(index)];
    auto violation = stage_order_violation(pipeline, graph_);
    if (!violation) return true;
    violation->text = fmt::format("pipeline {}: {}", index, violation->text);
    violations_.push_back(std::move(*violation));
    return false;
  }

  void check_sum(std::span<const double> shares, const std::string& where) {
    const bool positive = std::all_of(shares.begin(), shares.end(), [](double s) { return s > 0 && std::isfinite(s); });
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    if (!positive || !(std::abs(sum - 1.0) <= kShareTolerance)) {
      add(Fault::shares, fmt::format("{}: shares [{}] are not positive numbers that sum to 1", where,
                                     fmt::join(shares.begin(), shares.end(), ", ")));
      shares_sound_ = false;
    }
  }

  void check_shares() {
    if (plan_.pipelines.empty()) return;
    std::vector<double> shares;
    for (const Pipeline& pipeline : plan_.pipelines) shares.push_back(pipeline.share);
    shares_sound_ = true;
    check_sum(shares, "pipelines");
    if (!shares_sound_ || !limits_.batch) return;
    const std::vector<std::int64_t> rows_of = largest_remainder(*limits_.batch, shares);
    for (std::size_t p = 0; p < shares.size(); ++p) {
      const std::int64_t rows = rows_of[p];
      const std::int64_t micro_batches = plan_.pipelines[p].micro_batches;
      if (rows >= micro_batches) continue;
      add(Fault::batch_too_small,
          fmt::format(
              "a batch of {} gives pipeline {} (of {}) {} rows, fewer than its {} micro-batches: the batch must "
              "be at least pipelines × micro-batches",
              *limits_.batch, p, shares.size(), rows, micro_batches));
    }
  }

  void check_sharing() {
    for (std::size_t p = 0; p < plan_.pipelines.size(); ++p) {
      const std::vector<Stage>& stages = plan_.pipelines[p].stages;
      std::map<int, std::size_t> first;  // stage by device
      for (std::size_t s = 0; s < stages.size(); ++s) {
        for (const int device : stages[s].devices) {
          const Stage& other = stages[first.try_emplace(device, s).first->second];
          if (other.devices == stages[s].devices && other.shares == stages[s].shares &&
              other.tensor_parallel == stages[s].tensor_parallel) {
            continue;
          }
          add(Fault::device_repeated,
              fmt::format(
                  "pipeline {}: device {} is in stages {} and {}, which share some devices; stages of a pipeline "
                  "that share a device share all devices, shares and tensor_parallel",
                  p, device, first.at(device), s));
          break;
        }
      }
    }
  }

  void check_devices() {
    std::vector<int> used;
    for (const Pipeline& pipeline : plan_.pipelines) {
      for (const Stage& stage : pipeline.stages) used.insert(used.end(), stage.devices.begin(), stage.devices.end());
    }
    std::sort(used.begin(), used.end());
    const auto twice = std::adjacent_find(used.begin(), used.end());
    if (limits_.several_stages) {
      check_sharing();
    } else if (twice != used.end() && !limits_.judged_only) {
      add(Fault::device_repeated, fmt::format("device {} is in two places; a device holds one stage", *twice));
    }
    used.erase(std::unique(used.begin(), used.end()), used.end());
    if (!used.empty() && used.front() < 0) {
      add(Fault::device_count, fmt::format("device {}: numbers start at 0", used.front()));
    }
    if (!limits_.devices || used.empty()) return;
    const int devices = *limits_.devices;
    const auto count = static_cast<int>(used.size());
    if (count <= devices && used.back() >= devices) {
      add(Fault::device_count, fmt::format("device {} does not exist; the cluster has {}", used.back(),
                                           devices == 1 ? "device 0" : fmt::format("devices 0 to {}", devices - 1)));
    } else if (count > devices || (count < devices && !limits_.judged_only)) {
      add(Fault::device_count, fmt::format("the plan uses {}, the job has {}; every rank needs its stage",
                                           counted(count, "device"), counted(devices, "rank")));
    }
  }

  const Plan& plan_;
  const Graph& graph_;
  const Limits& limits_;
  bool shares_sound_ = true;
  std::vector<const Pipeline*> sound_;  // cover and order hold: equal pipelines need no second look
  std::vector<Violation> violations_;
};

}  // namespace

std::string_view name(Fault fault) {
  switch (fault) {
    case Fault::other_graph:
      return "other_graph";
    case Fault::no_stages:
      return "no_stages";
    case Fault::unknown_operator:
      return "unknown_operator";
    case Fault::empty_stage:
      return "empty_stage";
    case Fault::missing_operator:
      return "missing_operator";
    case Fault::repeated_operator:
      return "repeated_operator";
    case Fault::not_convex:
      return "not_convex";
    case Fault::cyclic:
      return "cyclic";
    case Fault::stage_order:
      return "stage_order";
    case Fault::device_count:
      return "device_count";
    case Fault::device_repeated:
      return "device_repeated";
    case Fault::shares:
      return "shares";
    case Fault::micro_batches:
      return "micro_batches";
    case Fault::batch_too_small:
      return "batch_too_small";
    case Fault::warmup:
      return "warmup";
  }
  return "?";
}

std::vector<Violation> validate(const Plan& plan, const Graph& graph, const Limits& limits) {
  return Validation(plan, graph, limits).run();
}

void require_valid(const Plan& plan, const Graph& graph, const Limits& limits, std::string_view what) {
  const std::vector<Violation> violations = validate(plan, graph, limits);
  if (violations.empty()) return;
  std::string text = fmt::format("{}: not a valid plan", what);
  const char* before = violations.size() == 1 ? ": " : "\n  ";
  for (const Violation& violation : violations) text += before + violation.text;
  throw InvalidInput(text);
}

}  // namespace millrace::plan
