// One operator on the numbers of one device, through its reference kernel in fp64.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "graph/graph.h"
#include "kernels/op_kernel.h"

namespace millrace::shard::testing {

using Numbers = std::vector<double>;

class LocalRun {
 public:
  /// `node` gives kind and name; attributes and shapes are those of the part. \param samples  the id of each row
  LocalRun(const Operator& node, const Attributes& attributes, const std::vector<TensorShape>& inputs,
           std::vector<std::int64_t> samples);

  /// Numbers of inputs, parameters and buffers, in this order; returns the outputs.
  std::vector<Numbers> forward(const std::vector<Numbers>& operands);
  /// Gradients of inputs (none for indices) and parameters, in this order.
  std::vector<Numbers> backward(const Numbers& output_gradient);

 private:
  void call(const Numbers* output_gradient, std::vector<Numbers>* gradients);

  Graph graph_;
  OpId op_ = -1;
  std::vector<std::int64_t> samples_;
  std::unique_ptr<kernels::OpKernel> kernel_;
  std::vector<Numbers> operands_, outputs_, buffer_gradients_;
  std::vector<std::vector<std::int32_t>> indices_;
  std::vector<char> extra_, scratch_;
};

}  // namespace millrace::shard::testing
