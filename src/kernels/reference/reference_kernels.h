// Kernels in plain loops for every operator kind: what each other device is tested against and may fall back on.
#pragma once

#include <cstdint>
#include <memory>

#include "graph/graph.h"
#include "kernels/op_kernel.h"
#include "kernels/precision.h"

namespace millrace::kernels {

/// The reference kernel of one operator, all tensors in plain row-major layout. Single-threaded; the results of a
/// sample depend on nothing but that sample (batch norm: on the valid samples), and parameter gradients are added
/// sample by sample in ascending order, so that equal micro-batches give equal bits wherever stages are cut.
/// \param graph  outlives the kernel.
/// \throws InvalidInput  a kind without a reference kernel.
std::unique_ptr<OpKernel> make_reference_kernel(const Graph& graph, OpId op, std::int64_t rows, Precision precision,
                                                bool training, std::uint64_t seed);

}  // namespace millrace::kernels
