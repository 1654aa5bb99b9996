// The kernels of a tensor-parallel stage that a device does not have: exchanges, and operators that know their part.
#pragma once

#include <memory>

#include "kernels/kernel_source.h"
#include "kernels/precision.h"
#include "plan/stage_parts.h"
#include "runtime/part_group.h"

namespace millrace::runtime {

class PartKernels final : public kernels::KernelSource {
 public:
  /// All outlive what is compiled with this. \param whole  the graph that `parts` were cut from
  PartKernels(const StageParts& parts, const Graph& whole, PartGroup& group, kernels::Precision precision)
      : parts_(parts), whole_(whole), group_(group), precision_(precision) {}

  std::unique_ptr<kernels::OpKernel> make(OpId op, const kernels::CompileOptions& options,
                                          kernels::KernelFactory& device) override;

 private:
  template <class T>
  std::unique_ptr<kernels::OpKernel> make_split(const SplitOperator& split, const kernels::CompileOptions& options);

  const StageParts& parts_;
  const Graph& whole_;
  PartGroup& group_;
  kernels::Precision precision_;
};

}  // namespace millrace::runtime
