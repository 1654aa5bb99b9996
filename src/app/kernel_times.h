// Where the processor's time goes in one training step, by kind of operator, and the rate that matmuls reach here.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "kernels/variants.h"

namespace millrace::app {

/// All operators of one kind in one step, on one thread, in seconds of that thread's own processor time: what others do
/// on the machine hardly changes them.
struct KindTime {
  std::string kind;
  double forward_s = 0;
  double backward_s = 0;  ///< both halves
};

/// Each figure is the least of several steps over the whole network. Longest kind first. \pre the graph trains.
/// `variants` may be null.
std::vector<KindTime> kernel_times(const Graph& graph, std::int64_t rows, std::shared_ptr<kernels::Variants> variants);

/// Floating point operations of one training step of `rows` samples.
double step_flops(const Graph& graph, std::int64_t rows);

/// Operations per second of processor time that a large matmul reaches on one thread, the best of several.
double matmul_peak();

}  // namespace millrace::app
