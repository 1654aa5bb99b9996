// A large transformer on many devices, as training papers describe it: a few numbers instead of a graph and a plan.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cost/transformer.h"

namespace millrace::planner {

/// Measured times of one micro-batch on a stage between the first and the last, in seconds.
struct ProfiledStage {
  double forward = 0;
  double backward_input = 0;
  double backward_weight = 0;
  double hop = 0;  ///< of an activation or a gradient to the next device
};

/// Pipelines of `pipeline` stages of `tensor` devices, `data` of them side by side. Ranks count tensor index fastest,
/// then replica, then stage, as in Megatron-LM.
struct Layout {
  cost::Transformer model;
  int tensor = 1;
  int pipeline = 1;
  int data = 1;
  int chunks = 1;  ///< virtual stages of a device; the layers of a stage are spread over them
  std::int64_t micro_batch = 1;
  std::int64_t global_batch = 1;
  std::string schedule = "1f1b";
  double live_limit = 0;  ///< zb-greedy: activations that a device may keep, in whole pipelines' worth (1: 1F1B's most)
  cost::Recompute recompute = cost::Recompute::none;
  bool sequence_parallel = false;
  bool sharded_optimizer = false;  ///< optimizer state, its update and the reduction split over replicas
  bool overlapped = false;         ///< gradients are reduced and weights gathered beside computation, messages too
  std::string precision = "bf16";
  cost::Software software;
  std::optional<ProfiledStage> profiled;  ///< replaces the model's times of layers, head and embedding

  std::int64_t devices() const { return std::int64_t{tensor} * pipeline * data; }
  std::int64_t micro_batches() const { return global_batch / data / micro_batch; }
  int stages() const { return pipeline * chunks; }
};

/// Layers of each virtual stage, first to last. Even where the number divides; else even with the embedding and the
/// head counted as a layer each; else the last stages have one less.
/// \throws InvalidInput  more virtual stages than layers, embedding and head together.
std::vector<int> layers_of_stages(const Layout& layout);

/// Micro-batches, replicas and stages that divide the batch and the layers.
/// \throws InvalidInput  saying which does not divide.
void check(const Layout& layout);

}  // namespace millrace::planner
