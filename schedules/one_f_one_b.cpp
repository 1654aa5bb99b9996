// 1F1B: warm-up forwards, then alternate, then drain. METHODS 2.
#include "schedules/one_f_one_b.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/errors.h"

namespace millrace::schedules {
namespace {

// One a stage of `pipeline`, whose first stage has flat index `first`.
std::vector<std::int64_t> warmups(const Pipeline& pipeline, std::int32_t first, const StageDag& dag, int number) {
  const std::size_t stages = pipeline.stages.size();
  if (!pipeline.warmup.empty() && pipeline.warmup.size() != stages) {
    throw InvalidInput(fmt::format("pipeline {} gives {} warm-ups for {} stages; 1f1b takes one a stage, or none",
                                   number, pipeline.warmup.size(), stages));
  }
  std::vector<std::int64_t> result;
  for (std::size_t s = 0; s < stages; ++s) {
    const int asked =
        pipeline.warmup.empty() ? dag.depth_from_end[static_cast<std::size_t>(first) + s] : pipeline.warmup[s];
    if (asked < 0) {
      throw InvalidInput(fmt::format("warm-up {} of stage {} of pipeline {}; allowed: 0 or more", asked, s, number));
    }
    result.push_back(std::min(std::int64_t{asked}, pipeline.micro_batches - 1));
  }
  return result;
}

void require_no_increase(const std::vector<std::int64_t>& warmup, std::int32_t first, const StageDag& dag, int number) {
  for (std::size_t s = 0; s < warmup.size(); ++s) {
    for (const std::int32_t successor : dag.successors[static_cast<std::size_t>(first) + s]) {
      const auto next = static_cast<std::size_t>(successor - first);
      if (warmup[s] >= warmup[next]) continue;
      throw InvalidInput(
          fmt::format("pipeline {}: stage {} has warm-up {}, stage {}, which it feeds, has {}: the pipeline "
                      "would deadlock; 1f1b allows no warm-up less than that of a stage it feeds",
                      number, s, warmup[s], next, warmup[next]));
    }
  }
}

}  // namespace

ComputeOrder one_f_one_b(const Plan& plan, const StageDag& dag, const StageCosts&, const config::Values&) {
  ComputeOrder order(plan);
  for (int p = 0; p < static_cast<int>(plan.pipelines.size()); ++p) {
    const Pipeline& pipeline = plan.pipelines[static_cast<std::size_t>(p)];
    const std::int32_t first = flat_index(plan, {p, 0});
    const std::vector<std::int64_t> warmup = warmups(pipeline, first, dag, p);
    require_no_increase(warmup, first, dag, p);
    const std::int64_t m = pipeline.micro_batches;
    for (std::size_t s = 0; s < warmup.size(); ++s) {
      ComputeOrder::Lane lane = order.lane({p, static_cast<int>(s)});
      for (std::int64_t k = 0; k < warmup[s]; ++k) lane.forward(k);
      for (std::int64_t k = warmup[s]; k < m; ++k) lane.forward(k).backward(k - warmup[s]);
      for (std::int64_t k = m - warmup[s]; k < m; ++k) lane.backward(k);
    }
  }
  return order;
}

}  // namespace millrace::schedules
