// Steps of one 1F1B rank after the other.
#include "sim/sample_job.h"

#include <algorithm>

namespace millrace::sim {
namespace {

// Edges of a rank come in the order in which they are connected: down to the next stage, then up from it.
struct SampleSlots {
  std::int16_t activation_in = 0, gradient_out = 0, activation_out = 0, gradient_in = 0;
};

SampleSlots slots(int stage) {
  const auto next = static_cast<std::int16_t>(stage > 0 ? 2 : 0);
  return {0, 1, next, static_cast<std::int16_t>(next + 1)};
}

void pass(std::vector<Step>& steps, double seconds, const SampleSize& size, std::int32_t label) {
  for (int i = 0; i <= size.collectives; ++i) {
    steps.push_back({.seconds = seconds / (size.collectives + 1), .label = label});
    if (i == size.collectives) break;
    steps.push_back({.kind = StepKind::collective, .traffic = Traffic::tensor, .seconds = size.collective});
  }
}

std::vector<Step> program(int stage, const SampleSize& size) {
  std::vector<Step> steps;
  const SampleSlots slot = slots(stage);
  const bool first = stage == 0, last = stage == size.stages - 1;
  const auto forward = [&](int k) {
    if (!first) steps.push_back({.kind = StepKind::receive, .slot = slot.activation_in, .index = k});
    const std::size_t start = steps.size();
    pass(steps, size.forward, size, k);
    steps[start].memory = 1;
    if (!last) steps.push_back({.kind = StepKind::send, .slot = slot.activation_out, .index = k, .bytes = 1});
  };
  const auto backward = [&](int k) {
    if (!last) steps.push_back({.kind = StepKind::receive, .slot = slot.gradient_in, .index = k});
    pass(steps, size.backward, size, k);
    steps.back().memory = -1;
    if (!first) steps.push_back({.kind = StepKind::send, .slot = slot.gradient_out, .index = k, .bytes = 1});
  };
  const int m = size.micro_batches, warmup = std::min(m, size.stages - 1 - stage);
  for (int k = 0; k < warmup; ++k) forward(k);
  for (int k = warmup; k < m; ++k) {
    forward(k);
    backward(k - warmup);
  }
  for (int k = m - warmup; k < m; ++k) backward(k);
  steps.push_back(
      {.kind = StepKind::start_collective, .traffic = Traffic::gradients, .slot = 1, .seconds = size.reduce});
  steps.push_back({.kind = StepKind::wait_started});
  steps.push_back({.kind = StepKind::collective, .traffic = Traffic::gradients, .slot = 2, .seconds = size.norm});
  steps.push_back({.seconds = size.update});
  return steps;
}

}  // namespace

SampleJob sample_job(const SampleSize& size) {
  SampleJob out;
  for (int s = 0; s < size.stages; ++s) out.job.add_rank(out.job.add_program(program(s, size)));
  for (int s = 0; s + 1 < size.stages; ++s) {
    out.job.connect(s, s + 1, 0, size.hop);
    out.job.connect(s + 1, s, 0, size.hop);
  }
  for (int s = 0; s < size.stages; ++s) {
    out.job.add_group({s});
    out.job.add_group({s});
    out.reach.insert(out.reach.end(), {Reach::tensor, Reach::data});
  }
  std::vector<std::int32_t> all;
  for (int s = 0; s < size.stages; ++s) all.push_back(s);
  out.job.add_group(all);
  out.reach.push_back(Reach::all);
  return out;
}

}  // namespace millrace::sim
