// Refusals in one wording, and the check that warm-ups cannot stop a pipeline.
#include "schedules/common/plan_rules.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/errors.h"
#include "program/compute_order.h"

namespace millrace::schedules {

void require_one_stage_a_device(const Plan& plan, std::string_view schedule) {
  std::map<int, StageRef> held;
  for (int p = 0; p < static_cast<int>(plan.pipelines.size()); ++p) {
    const Pipeline& pipeline = plan.pipelines[static_cast<std::size_t>(p)];
    for (int s = 0; s < static_cast<int>(pipeline.stages.size()); ++s) {
      for (const int device : pipeline.stages[static_cast<std::size_t>(s)].devices) {
        const auto [other, is_new] = held.try_emplace(device, StageRef{p, s});
        if (is_new) continue;
        throw InvalidInput(
            fmt::format("schedule {} takes one stage a device; device {} is in stage {} of pipeline {} and in stage {} "
                        "of pipeline {} (interleaved, zb-v, chimera and zb-greedy take several)",
                        schedule, device, other->second.stage, other->second.pipeline, s, p));
      }
    }
  }
}

void require_no_warmup(const Plan& plan, std::string_view schedule) {
  for (const Pipeline& pipeline : plan.pipelines) {
    if (pipeline.warmup.empty()) continue;
    throw InvalidInput(
        fmt::format("schedule {} has its own warm-up: 'warmup' must be empty (or choose 1f1b)", schedule));
  }
}

void require_alike_pipelines(const Plan& plan, std::string_view schedule) {
  const Pipeline& first = plan.pipelines.front();
  const auto refuse = [&](std::size_t p, std::string_view what) {
    throw InvalidInput(fmt::format(
        "schedule {} updates weights while micro-batches are in flight, in all pipelines at once: they have "
        "the same stages, micro-batches and warm-ups; {} of pipeline {} are not those of pipeline 0",
        schedule, what, p));
  };
  for (std::size_t p = 1; p < plan.pipelines.size(); ++p) {
    const Pipeline& other = plan.pipelines[p];
    const bool alike = std::equal(
        first.stages.begin(), first.stages.end(), other.stages.begin(), other.stages.end(),
        [](const Stage& a, const Stage& b) { return a.ops == b.ops && a.tensor_parallel == b.tensor_parallel; });
    if (!alike) refuse(p, "stages");
    if (other.micro_batches != first.micro_batches) refuse(p, "micro-batches");
    if (other.warmup != first.warmup) refuse(p, "warm-ups");
  }
}

std::vector<std::int64_t> warmups(const Plan& plan, int number, const StageDag& dag, std::string_view schedule,
                                  std::int64_t most) {
  const Pipeline& pipeline = plan.pipelines[static_cast<std::size_t>(number)];
  const auto first = static_cast<std::size_t>(flat_index(plan, {number, 0}));
  const std::size_t stages = pipeline.stages.size();
  if (!pipeline.warmup.empty() && pipeline.warmup.size() != stages) {
    throw InvalidInput(fmt::format("pipeline {} gives {} warm-ups for {} stages; {} takes one a stage, or none", number,
                                   pipeline.warmup.size(), stages, schedule));
  }
  std::vector<std::int64_t> result;
  for (std::size_t s = 0; s < stages; ++s) {
    const int asked = pipeline.warmup.empty() ? dag.depth_from_end[first + s] : pipeline.warmup[s];
    if (asked < 0) {
      throw InvalidInput(fmt::format("warm-up {} of stage {} of pipeline {}; allowed: 0 or more", asked, s, number));
    }
    result.push_back(std::min(std::int64_t{asked}, most));
  }
  for (std::size_t s = 0; s < stages; ++s) {
    for (const std::int32_t successor : dag.successors[first + s]) {
      const std::size_t next = static_cast<std::size_t>(successor) - first;
      if (result[s] >= result[next]) continue;
      throw InvalidInput(
          fmt::format("pipeline {}: stage {} has warm-up {}, stage {}, which it feeds, has {}: the pipeline "
                      "would deadlock; {} allows no warm-up less than that of a stage it feeds",
                      number, s, result[s], next, result[next], schedule));
    }
  }
  return result;
}

}  // namespace millrace::schedules
