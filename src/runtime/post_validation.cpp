// Updates that are made before the global norm is known, and taken back where it says so (METHODS 2: zb-h2).
#include <algorithm>

#include "runtime/program_runner.h"

namespace millrace::runtime {

void ProgramRunner::keep_before_update(std::int32_t stage) {
  const auto s = static_cast<std::size_t>(stage);
  if (!program_.post_validation || kept_[s]) return;
  stages_[s].runner->parameters().keep(0);
  stages_[s].optimizer->keep();
  kept_[s] = true;
}

// The norm of the updates that were made in the round before. All ranks see the same one, so all go on, or all amend
// their updates and begin the round again.
bool ProgramRunner::validate(std::int64_t iteration) {
  reduce_norm(iteration);
  Iteration& its = open(iteration);
  const bool valid = !its.skipped && its.gradient_scale == 1;
  if (valid) {
    exchange_.go_on();
  } else {
    amend(iteration);
    begin_again();
  }
  for (std::int32_t b = 0; b < static_cast<std::int32_t>(program_.buckets.size()); ++b) {
    if (reducer_.copies(b).empty()) continue;
    if (!valid) reducer_.clear_statistics(b);  // those of forwards that will come again
    reducer_.clear_gradients(b);
  }
  std::fill(kept_.begin(), kept_.end(), false);
  return valid;
}

// Back to what was before the updates; then, if the gradients are finite, the updates with clipped ones. Running
// statistics are not clipped: what they became stays unless all is skipped.
void ProgramRunner::amend(std::int64_t iteration) {
  Iteration& its = open(iteration);
  for (std::int32_t b = 0; b < static_cast<std::int32_t>(program_.buckets.size()); ++b) {
    for (const BucketPlace& copy : reducer_.copies(b)) {
      const auto stage = static_cast<std::size_t>(copy.runner->stage());
      kernels::StageParameters& parameters = copy.runner->parameters();
      Optimizer& optimizer = *stages_[stage].optimizer;
      for (std::size_t i = copy.first; i < copy.first + copy.count; ++i) {
        const bool statistic = graph_.tensor(parameters.order()[i]).role == Role::buffer;
        if (statistic && !its.skipped) continue;
        parameters.restore(0, i, 1);
        optimizer.restore(i, 1);
        if (its.skipped) continue;
        UpdateScalars scalars;
        scalars.learning_rate = its.settings.learning_rate;
        scalars.gradient_scale = its.gradient_scale;
        scalars.step = its.updates_before + its.updates[static_cast<std::size_t>(b)];
        optimizer.update(i, 1, scalars);
      }
    }
  }
  if (!its.skipped) return;
  // The update did not happen: those after it count from before it.
  *updates_ -= updates_per_iteration_;
  if (&open(round_) != &its) open(round_).updates_before = *updates_;
}

// Forgets the forwards that the round has made with weights that were not valid.
void ProgramRunner::begin_again() {
  exchange_.discard(watchdog_);
  slots_.clear();
  sums(round_).clear();
}

}  // namespace millrace::runtime
