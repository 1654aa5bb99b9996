// Where every buffer of a compiled stage lies: what each micro-batch keeps in its slot, the rest in shared workspace.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "kernels/device.h"
#include "kernels/gradient_flow.h"
#include "kernels/kernel_factory.h"
#include "kernels/recompute_plan.h"

namespace millrace::kernels {

/// A buffer's offset in its slot or in the workspace.
struct Place {
  enum class Region : std::uint8_t { none, slot, workspace };
  Region region = Region::none;
  std::int64_t offset = 0;
};

/// What a kernel reads, and where it writes the gradient of that.
struct KernelInput {
  enum class Gradient : std::uint8_t {
    none,   ///< it is not wanted
    sum,    ///< straight into TensorPlan::gradients: the first
    added,  ///< apart, to be added to those of later readers
    term    ///< into TensorPlan::terms
  };
  TensorId tensor = 0;
  Gradient gradient = Gradient::none;
  Place added;
};

/// The buffers of one operator besides its tensors.
struct OpPlaces {
  Place extra;
  Place recomputed_extra;  ///< where it lies from its second forward on; none: it is still in `extra`
  Place forward_scratch;
  Place recompute_scratch;
  Place backward_scratch;
  /// Those of the operator, then what operators whose work its kernel does too read besides. An absorbed one has none.
  std::vector<KernelInput> inputs;
};

/// Slots hold the border's tensors and gradients from outside, what backward reads (the schema's `saved`) and the
/// kernels' extras. The workspace holds activations that forward alone reads, gradients and scratch; the stage's input
/// gradients lie apart in it, since they are read until the next backward. What is dropped lies in the workspace of the
/// forward first and in that of the backward when it is back, from its segment's second forward to the last backward
/// that reads it. The gradient of an operator's input lies over that of its output where the kernel allows it.
struct TensorPlan {
  std::unordered_map<TensorId, Place> values;
  std::unordered_map<TensorId, Place> recomputed;  ///< of RecomputePlan::dropped
  std::unordered_map<TensorId, Place> gradients;   ///< summed over all readers
  /// What the first reader of a tensor adds to its gradient, where the kernel that made the tensor takes the sum of the
  /// others and this term apart.
  std::unordered_map<TensorId, Place> terms;
  std::vector<OpPlaces> ops;  ///< by position in StageGraph::ops
  Place samples;              ///< the row's sample ids, 64-bit each
  std::int64_t slot_bytes = 0;
  std::int64_t workspace_bytes = 0;
};

/// \param kernels  of the stage's operators, by position.
TensorPlan plan_tensors(const StageGraph& stage, const GradientFlow& flow, const RecomputePlan& again,
                        const CompileOptions& options, const KernelFactory& factory,
                        std::span<const std::unique_ptr<OpKernel>> kernels);

}  // namespace millrace::kernels
