// Lowers a plan for the batches that the data gives and asks the devices.
#include "app/memory_forecast.h"

#include <algorithm>

#include "app/planning.h"
#include "base/errors.h"
#include "program/liveness.h"
#include "runtime/forecast.h"
#include "runtime/threads.h"

namespace millrace::app {
namespace {

plan::StageMemory memory_of(const RankReport& report) {
  return {.weights = Bytes(report.weights_bytes),
          .gradients = Bytes(report.gradients_bytes),
          .optimizer = Bytes(report.optimizer_bytes),
          .activations = Bytes(report.activations_bytes),
          .workspace = Bytes(report.workspace_bytes),
          .buffers = Bytes(report.buffers_bytes)};
}

}  // namespace

MemoryForecast::MemoryForecast(const Session& session) : session_(session) {
  const bool described = session.experiment.cluster.described || session.experiment.cluster.carried;
  known_ = session.cluster.emulated() || (!described && why_not_trainable(session.graph).empty());
  if (!known_) return;
  if (session.cluster.emulated()) {
    emulated_ = std::make_unique<EmulatedSizes>(session);
  } else {
    runtime::use_threads(session.threads);  // kernels keep something for each
  }
  const SampleCounts samples = sample_counts(session);
  train_samples_ = samples.train;
  test_samples_ = samples.test;
}

std::optional<planner::ProgramMemory> MemoryForecast::of(const Plan& plan) const {
  if (!known_) return std::nullopt;
  constexpr std::int64_t kAnyTag = std::int64_t{1} << 30;
  try {
    const runtime::Programs programs = make_programs(session_, plan, train_samples_, test_samples_, kAnyTag);
    const auto ranks = runtime::forecast_all(session_.graph, programs, session_.experiment.train,
                                             emulated_ ? &emulated_->device() : nullptr);
    planner::ProgramMemory memory;
    memory.stages.resize(programs.train.front().stages.size());
    for (const runtime::Forecast& forecast : ranks) {
      memory.ranks.push_back(memory_of(forecast.rank));
      for (const auto& [stage, part] : forecast.stages) {
        plan::StageMemory& fullest = memory.stages[static_cast<std::size_t>(stage)];
        if (memory_of(part).total() > fullest.total()) fullest = memory_of(part);
      }
    }
    for (std::size_t s = 0; s < memory.stages.size(); ++s) {
      const auto live = peak_live_micro_batches(programs.train.front(), static_cast<std::int32_t>(s));
      memory.live_micro_batches.push_back(*std::max_element(live.begin(), live.end()));
    }
    return memory;
  } catch (const InvalidInput&) {
    return std::nullopt;  // it can be planned and simulated, and run says why it cannot be run
  }
}

}  // namespace millrace::app
