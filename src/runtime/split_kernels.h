// Kernels of operators whose parts are not operators of their kind on smaller tensors.
#pragma once

#include <memory>

#include "kernels/device.h"
#include "kernels/op_kernel.h"
#include "plan/stage_parts.h"
#include "runtime/part_group.h"

namespace millrace::runtime {

/// What such a kernel is made from; `split`, `op` and `group` outlive it.
struct SplitSetup {
  const SplitOperator& split;
  const Operator& op;  ///< of the whole graph
  const Graph& graph;  ///< the whole one
  PartGroup& group;
  const kernels::CompileOptions& options;
};

/// Embedding of the rows that this rank has; zeros for the others.
template <class T>
std::unique_ptr<kernels::OpKernel> make_split_table(const SplitSetup& setup);

/// Cross-entropy of the classes that this rank has. The maximum, the sum of exponentials and the logit of the label of
/// each row are put together from all parts, in one reduction.
template <class T>
std::unique_ptr<kernels::OpKernel> make_split_classes(const SplitSetup& setup);

/// Dropout of a part of each sample, by the mask of the whole sample.
template <class T>
std::unique_ptr<kernels::OpKernel> make_split_mask(const SplitSetup& setup);

}  // namespace millrace::runtime
