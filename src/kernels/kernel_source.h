// Kernels that a caller makes in place of the device's own: those that talk to other ranks.
#pragma once

#include <memory>

#include "kernels/kernel_factory.h"

namespace millrace::kernels {

struct CompileOptions;

class KernelSource {
 public:
  virtual ~KernelSource() = default;
  /// Null: the device makes the kernel of `op`. `device` makes what the caller wraps. Tensors that such a kernel reads
  /// and writes are plain row-major.
  virtual std::unique_ptr<OpKernel> make(OpId op, const CompileOptions& options, KernelFactory& device) = 0;
};

}  // namespace millrace::kernels
