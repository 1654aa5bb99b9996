// A whole network compiled for one micro-batch on this device, with data to compute on: what profiles and speeds are
// measured with.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "graph/graph.h"
#include "kernels/device.h"

namespace millrace::probe {

/// Parameters, and an executable of one slot with normal inputs, uniform indices and the loss's weights filled in.
class NetworkSample {
 public:
  /// \pre the graph trains. `graph` and `device` must outlive it.
  NetworkSample(const Graph& graph, kernels::Device& device, kernels::Precision precision, std::uint64_t seed);

  /// For `rows` rows in place of what was compiled before.
  void compile(std::int64_t rows);
  void forward();
  void backward() { executable_->backward(0); }

  kernels::StageParameters& parameters() { return parameters_; }
  kernels::Executable& executable() { return *executable_; }

 private:
  void fill(TensorId input);
  void seed_loss();

  const Graph& graph_;
  kernels::Device& device_;
  std::uint64_t seed_;
  StageGraph stage_;
  kernels::StageParameters parameters_;
  std::unique_ptr<kernels::Executable> executable_;
  std::vector<std::int64_t> samples_;
};

}  // namespace millrace::probe
