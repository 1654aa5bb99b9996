// Groups of p micro-batches go through the chunks of a device one after the other. METHODS 2.
#include "schedules/interleaved.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/errors.h"
#include "schedules/common/plan_rules.h"

namespace millrace::schedules {
namespace {

// The number of devices in a turn: stage i is on the devices of stage i mod p.
std::int64_t turn_of(const Pipeline& pipeline, int number) {
  const std::vector<Stage>& stages = pipeline.stages;
  std::size_t p = 1;
  while (p < stages.size() && stages[p].devices != stages[0].devices) ++p;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (stages.size() % p == 0 && stages[s].devices == stages[s % p].devices) continue;
    throw InvalidInput(fmt::format(
        "schedule interleaved deals stages to devices in turn, stage i to those of stage i mod p (here {}), "
        "with as many stages for each; pipeline {} has {} stages, and stage {} is elsewhere",
        p, number, stages.size(), s));
  }
  return static_cast<std::int64_t>(p);
}

}  // namespace

config::Options interleaved_options() {
  return {{"chunks", "stages of a pipeline on each device", config::Integer{1, 1024}, "2"}};
}

ComputeOrder interleaved(const Plan& plan, const StageDag&, const StageCosts&, const config::Values& options) {
  require_no_warmup(plan, "interleaved");
  const bool chunks_given = plan.schedule_options.contains("chunks");  // else the plan's stages say it
  ComputeOrder order(plan);
  for (int n = 0; n < static_cast<int>(plan.pipelines.size()); ++n) {
    const Pipeline& pipeline = plan.pipelines[static_cast<std::size_t>(n)];
    const std::int64_t m = pipeline.micro_batches;
    const std::int64_t p = turn_of(pipeline, n);
    const std::int64_t v = static_cast<std::int64_t>(pipeline.stages.size()) / p;
    if (chunks_given && v != options.integer("chunks")) {
      throw InvalidInput(
          fmt::format("schedule interleaved with {} chunks: pipeline {} has {} stages on each of {} places",
                      options.integer("chunks"), n, v, p));
    }
    if (v > 1 && m % p != 0) {
      throw InvalidInput(
          fmt::format("schedule interleaved with {} stages a device deals micro-batches to the {} places of a pipeline "
                      "in turn: micro_batches must be a multiple of {}, not {}",
                      v, p, p, m));
    }
    const std::int64_t all = m * v;
    for (std::int64_t s = 0; s < p; ++s) {
      // With one chunk there are no groups, and m need not be a multiple of p.
      const auto micro_batch = [&](std::int64_t k) { return v == 1 ? k : k / (p * v) * p + k % p; };
      const auto lane = [&](std::int64_t chunk) { return order.lane({n, static_cast<int>(chunk * p + s)}); };
      const auto forward = [&](std::int64_t k) { lane(k % (p * v) / p).forward(micro_batch(k)); };
      const auto backward = [&](std::int64_t k) { lane(v - 1 - k % (p * v) / p).backward(micro_batch(k)); };
      const std::int64_t warmup = m == p && v > 1 ? all : std::min(all, 2 * (p - 1 - s) + (v - 1) * p);
      for (std::int64_t k = 0; k < warmup; ++k) forward(k);
      for (std::int64_t k = warmup; k < all; ++k) {
        forward(k);
        backward(k - warmup);
      }
      for (std::int64_t k = all - warmup; k < all; ++k) backward(k);
    }
  }
  return order;
}

}  // namespace millrace::schedules
