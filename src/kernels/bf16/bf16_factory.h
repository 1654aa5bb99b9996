// Training in bf16 on any device: tensors between operators lie in bf16, and fp32 kernels compute on copies of them.
#pragma once

#include <memory>

#include "graph/graph.h"
#include "kernels/kernel_factory.h"

namespace millrace::kernels {

/// Wraps the kernels and layouts of `inner`, which are those of fp32. A call's operands are widened into scratch, and
/// what it writes is rounded once. The weight of a linear layer or convolution is rounded as it is read; all other
/// parameters, buffers, gradients of parameters, losses and labels are fp32. Passes that `inner` has in bf16
/// (KernelFactory::make_bf16) get their tensors as they lie.
/// \param graph  outlives what is made. \param threads  that copy.
std::unique_ptr<KernelFactory> make_bf16_factory(const Graph& graph, std::unique_ptr<KernelFactory> inner, int threads);

}  // namespace millrace::kernels
