// One training step of a large model as instruction lists: one for each device of a pipeline, equal devices folded.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/large_model.h"
#include "planner/step_costs.h"
#include "program/compute_order.h"
#include "sim/job.h"

namespace millrace::planner {

/// In which order each device of the pipeline computes its virtual stages, by the layout's schedule.
/// \throws InvalidInput  an unknown schedule, or what it does not allow; names the rule.
ComputeOrder step_order(const Layout& layout, const StepCosts& costs);

/// True when the order computes gradients of inputs and of weights apart.
bool splits_backward(const ComputeOrder& order);

/// A rank for each device of a pipeline, standing for its tensor-parallel group and all replicas of it.
///
/// Schedules that split the backward pass and overlapped layouts send beside computation; the others exchange messages
/// with both neighbours after each pass and wait for it, as Megatron-LM and DeepSpeed do. With a split backward pass
/// the embedding and the head are not tied (Qi et al. 2024), so that no device waits for another at the end.
sim::Job step_job(const Layout& layout, const StepCosts& costs, const ComputeOrder& order);

/// The most micro-batches alive at once on each device of the pipeline, each counted by the layers that it is kept for.
std::vector<std::int64_t> peak_live_layers(const Layout& layout, const ComputeOrder& order);

}  // namespace millrace::planner
