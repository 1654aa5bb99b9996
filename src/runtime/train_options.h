// What training does beside the plan: optimizer, learning rate, clipping, evaluation, limits.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/units.h"
#include "kernels/precision.h"

namespace millrace::kernels {
class Variants;
}

namespace millrace::runtime {

enum class OptimizerKind : std::uint8_t { sgd, adam, adamw };

/// Defaults and formulas as PyTorch's optimizers of the same names.
struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::sgd;
  double learning_rate = 0.01;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
};

enum class ScheduleKind : std::uint8_t { constant, step, cosine };

/// How the learning rate changes with the iteration; warm-up is linear.
struct LearningRateOptions {
  ScheduleKind kind = ScheduleKind::constant;
  std::int64_t warmup = 0;  ///< iterations from lr/warmup up to lr
  double minimum = 0;       ///< cosine: where it ends
  std::int64_t every = 1;   ///< step: iterations between two reductions
  double factor = 0.1;      ///< step: what each reduction multiplies by
};

struct TrainOptions {
  std::uint64_t seed = 1;
  std::int64_t iterations = 100;
  OptimizerOptions optimizer;
  LearningRateOptions learning_rate;
  double clip_norm = 0;  ///< global norm that gradients are scaled down to; 0: off
  kernels::Precision precision = kernels::Precision::fp32;
  std::string kernels = "auto";
  std::shared_ptr<kernels::Variants> variants{};  ///< which implementations kernels use; null: the standard ones
  bool evaluates = true;                          ///< on the test split; false: never
  std::int64_t evaluate_every = 0;                ///< 0: at the end only
  bool shard_optimizer = false;                   ///< Program::shard_optimizer
  bool any_grid = false;                          ///< train.reproducible: any
  std::int64_t checkpoint_every = 0;              ///< iterations; 0: on signals only
  int checkpoint_keep = 2;                        ///< the newest complete ones
  double slowdown = 1;                            ///< this rank's kernels take so many times longer; for experiments
  int maximum_skips = 5;        ///< iterations in a row without a finite gradient before the run fails
  Seconds stall_limit = 120_s;  ///< longest wait for a peer before the watchdog ends the job
};

}  // namespace millrace::runtime
