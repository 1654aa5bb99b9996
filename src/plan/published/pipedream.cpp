// The objective pipedream: a plan's flat list of stages is grouped into the levels of the machine as well as can be.
#include "plan/published/pipedream.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "base/limits.h"
#include "plan/published.h"
#include "plan/published/layer_profile.h"

namespace millrace::plan {
namespace {

struct Slowest {
  double seconds = kNever;
  int stage = 0;
  double stash_bytes = 0;  // of the fullest
};

Slowest slower(const Slowest& a, const Slowest& b) {
  const Slowest& slow = b.seconds > a.seconds ? b : a;
  return {slow.seconds, slow.stage, std::max(a.stash_bytes, b.stash_bytes)};
}

class PipeDreamFormula {
 public:
  PipeDreamFormula(const Pipeline& pipeline, const Problem& problem)
      : levels_(machine_levels(problem)),
        stages_(stage_figures(pipeline, layer_figures(problem))),
        memory_(equal_devices(problem).memory_bytes) {
    for (const Stage& stage : pipeline.stages) devices_.push_back(static_cast<int>(stage.devices.size()));
  }

  // One level: every stage on its devices.
  Slowest flat() const {
    Slowest slowest{.seconds = 0};
    const Level& level = levels_.back();
    int behind = level.machines;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      behind -= devices_[s];
      slowest = slower(slowest, stage(s, s + 1, stages_[s].seconds, devices_[s], behind, level, s > 0));
    }
    return slowest;
  }

  // Two levels: of all divisions of the stages into groups that fill whole nodes, the fastest that fits.
  Slowest grouped() const {
    std::vector<Slowest> best(stages_.size() + 1);
    best[0].seconds = 0;
    int used = 0;
    for (std::size_t end = 1; end <= stages_.size(); ++end) {
      used += devices_[end - 1];
      int devices = 0;
      for (std::size_t begin = end; begin-- > 0;) {
        devices += devices_[begin];
        const int replicas = devices / levels_[0].machines;
        if (devices % levels_[0].machines != 0 || !divides(begin, end, replicas)) continue;
        const Slowest all =
            slower(best[begin], group(begin, end, replicas, levels_[1].machines - used / levels_[0].machines));
        if (better(all, best[end])) best[end] = all;
      }
    }
    return best.back();
  }

  bool two_levels() const { return levels_.size() > 1; }
  const std::vector<Level>& levels() const { return levels_; }
  bool too_large(const Slowest& slowest) const { return memory_ && slowest.stash_bytes > *memory_; }
  double memory() const { return memory_.value_or(0); }

 private:
  bool better(const Slowest& a, const Slowest& b) const {
    if (too_large(a) != too_large(b)) return too_large(b);
    return a.seconds < b.seconds;
  }

  bool divides(std::size_t begin, std::size_t end, int replicas) const {
    for (std::size_t s = begin; s < end; ++s) {
      if (devices_[s] % replicas != 0) return false;
    }
    return true;
  }

  // Stages [begin, end) as one of a level. The first stage of a level's pipeline is charged for no border.
  Slowest stage(std::size_t begin, std::size_t end, double seconds, int m, int behind, const Level& level,
                bool borders) const {
    double parameters = 0, held = 0;
    for (std::size_t s = begin; s < end; ++s) {
      parameters += stages_[s].parameter_bytes;
      held += stages_[s].parameter_bytes + stages_[s].activation_bytes;
    }
    double slowest = pipedream_stage(seconds, parameters, m, level);
    if (borders) {
      slowest = std::max(slowest, pipedream_crossing(stages_[begin - 1].crossing_bytes, m, level));
      slowest = std::max(slowest, pipedream_crossing(stages_[end - 1].crossing_bytes, m, level));
    }
    return {slowest, static_cast<int>(begin), pipedream_stash(held, m, behind)};
  }

  // The stages inside a node make a pipeline of their own; the slowest is the compute time of the outer stage.
  Slowest group(std::size_t begin, std::size_t end, int replicas, int behind) const {
    Slowest inner{.seconds = 0};
    int left = levels_[0].machines;
    for (std::size_t s = begin; s < end; ++s) {
      const int m = devices_[s] / replicas;
      left -= m;
      inner = slower(inner, stage(s, s + 1, stages_[s].seconds, m, left, levels_[0], s > begin));
    }
    Slowest outer = stage(begin, end, inner.seconds, replicas, behind, levels_[1], begin > 0);
    outer.stage = inner.stage;
    outer.stash_bytes = std::max(outer.stash_bytes, inner.stash_bytes);
    return outer;
  }

  std::vector<Level> levels_;
  std::vector<StageFigures> stages_;
  std::vector<int> devices_;
  std::optional<double> memory_;
};

std::string pipedream_fault(const Plan& plan, const Problem& problem) {
  if (plan.pipelines.size() != 1) {
    return fmt::format("{} pipelines; PipeDream's formula knows one, with replicas of its stages",
                       plan.pipelines.size());
  }
  int devices = 0;
  for (const Stage& stage : plan.pipelines[0].stages) {
    if (stage.tensor_parallel != 1) return "tensor parallelism, which PipeDream's formula does not know";
    devices += static_cast<int>(stage.devices.size());
  }
  if (devices != problem.cluster->size()) {
    return fmt::format("{} of {} devices; PipeDream's formula uses all", devices, problem.cluster->size());
  }
  return {};
}

}  // namespace

Judgement judge_pipedream(const Plan& plan, const Problem& problem) {
  Judgement judgement{.value = kNever, .why_not = pipedream_fault(plan, problem)};
  if (plan.pipelines.size() != 1) return judgement;
  const PipeDreamFormula formula(plan.pipelines[0], problem);
  if (formula.two_levels() && !judgement.why_not.empty()) return judgement;
  const Slowest slowest = formula.two_levels() ? formula.grouped() : formula.flat();
  judgement.value = slowest.seconds;
  if (slowest.seconds < kNever) judgement.bottleneck = slowest.seconds;
  judgement.limiting_stage = slowest.stage;
  if (formula.memory() > 0) judgement.memory_bytes = slowest.stash_bytes;
  if (!judgement.why_not.empty()) return judgement;
  if (slowest.seconds == kNever) {
    judgement.why_not = fmt::format(
        "the replicas of the stages do not fill nodes of {} devices: consecutive stages "
        "must make groups whose devices are multiples of a node",
        formula.levels()[0].machines);
  } else if (formula.too_large(slowest)) {
    judgement.why_not = fmt::format("a stage keeps {:.0f} bytes of activations and parameters; a device has {:.0f}",
                                    slowest.stash_bytes, formula.memory());
  }
  return judgement;
}

double bound_pipedream(const Problem& problem) {
  // All work on all devices: a stage on r of them takes at least its compute / r, on one level and on two.
  const LayerFigures layers = layer_figures(problem);
  double seconds = 0;
  for (const double layer : layers.seconds) seconds += layer;
  return seconds / problem.cluster->size();
}

}  // namespace millrace::plan
