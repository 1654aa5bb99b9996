// Keeps candidates and refusals, and picks the best.
#include "plan/plan_set.h"

#include <algorithm>
#include <utility>

namespace millrace::plan {

std::string_view text(Refusal reason) {
  switch (reason) {
    case Refusal::more_stages_than_operators: return "more stages than operators";
    case Refusal::more_stages_than_devices: return "more stages than devices";
    case Refusal::pipelines_do_not_divide_devices: return "the devices do not divide into that many pipelines";
    case Refusal::batch_too_small: return "the batch is smaller than pipelines × micro-batches";
    case Refusal::not_offered: return "not offered";
    case Refusal::memory_exceeded: return "does not fit in memory";
    case Refusal::too_large: return "too large for this partitioner";
    case Refusal::time_limit: return "stopped by the time limit before there was a plan";
  }
  return "";
}

void PlanSet::refuse(int pipelines, int stages, Refusal reason, std::string detail) {
  Refused refused;
  refused.pipelines = pipelines;
  refused.stages = stages;
  refused.reason = reason;
  refused.detail = std::move(detail);
  refusals_.push_back(std::move(refused));
}

bool PlanSet::feasible() const {
  return std::any_of(candidates_.begin(), candidates_.end(), [](const Candidate& c) { return c.report.feasible; });
}

const Candidate& PlanSet::best(Objective objective) const {
  return *std::min_element(candidates_.begin(), candidates_.end(),
                           [&](const Candidate& a, const Candidate& b) { return better(objective, a, b); });
}

}  // namespace millrace::plan
