// How long a training step of a large model takes and what it keeps, by the simulator; and what a description left
// open.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "cluster/cluster.h"
#include "planner/large_model.h"

namespace millrace::planner {

struct StepPrediction {
  Layout layout;  ///< with everything that was open chosen
  Seconds time{};
  double memory_bytes = 0;      ///< of the device that needs most
  double activation_bytes = 0;  ///< kept for backward passes, where most: layer_activation_bytes of all live layers
};

/// Simulates one step: the layout's schedule, all micro-batches, reductions and update, on devices of unequal speed
/// (Host::spread).
/// \throws InvalidInput  what check() and the schedule refuse.
StepPrediction predict_step(const Layout& layout, const cluster::Cluster& cluster);

/// Bytes of the device that needs most, and the most activations: weights and their gradients, optimizer state (18
/// bytes a parameter in mixed precision, 12 of them split where the optimizer is sharded), kept activations of the
/// schedule's order, the layer that is computed again and the logits. `live_layers` as peak_live_layers() counts them.
struct StepMemory {
  double total = 0;
  double activations = 0;
};
StepMemory step_memory(const Layout& layout, const std::vector<std::int64_t>& live_layers);

/// The same for the layout's own schedule. \throws InvalidInput  as predict_step().
StepMemory step_memory(const Layout& layout, const cluster::Cluster& cluster);

/// What a description may leave open.
struct OpenChoices {
  bool micro_batch = false;
  bool chunks = false;
  bool recompute = false;
};

/// The fastest of all choices that fit the devices' memory: micro-batches of 1, 2, 4, … 16 samples, virtual stages that
/// divide the layers, each form of recomputation. A layout with nothing open is predicted as it is.
/// \throws InvalidInput  when none fits; says how much the smallest needs.
StepPrediction predict_fastest(const Layout& layout, const OpenChoices& open, const cluster::Cluster& cluster);

}  // namespace millrace::planner
