// A whole network compiled for one micro-batch on this device, with data to compute on: what profiles and speeds are
// measured with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "graph/graph.h"
#include "kernels/device.h"

namespace millrace::probe {

/// The operators of each stage, ascending. A stage reads only from stages before it.
using Stages = std::vector<std::vector<OpId>>;

/// Parameters, and an executable of one slot for each stage, with normal inputs, uniform indices and the loss's weights
/// filled in. What crosses between stages is copied into a message and out of it, as between ranks.
class NetworkSample {
 public:
  /// \param stages  of the whole graph; empty: it is one.
  /// \pre the graph trains. `graph` and `device` must outlive it.
  NetworkSample(const Graph& graph, kernels::Device& device, kernels::Precision precision, std::uint64_t seed,
                Stages stages = {});

  /// For `rows` rows in place of what was compiled before.
  void compile(std::int64_t rows);
  void forward();
  void backward();
  /// Who hears of the kernels of what is compiled; null: nobody. What puts a tensor into a message is told as part of
  /// the stage's last kernel, in backward of its first operator's; what takes it out counts for the next kernel.
  void observe(kernels::KernelObserver* observer);

  kernels::StageParameters& parameters() { return parameters_; }
  kernels::ExecutableBytes bytes() const;  ///< of all stages

 private:
  struct Part {
    StageGraph graph;
    std::unique_ptr<kernels::Executable> executable;
  };
  /// A tensor that a stage reads from another one, and its gradient on the way back.
  struct Message {
    TensorId tensor = -1;
    std::size_t from = 0, to = 0;  // stages
    bool has_gradient = false;
    std::vector<std::byte> data;
  };
  void connect();
  void fill(Part& part, TensorId input);
  void seed_loss();
  void take_gradient(const Message& message, bool first);

  const Graph& graph_;
  kernels::Device& device_;
  std::uint64_t seed_;
  std::vector<Part> parts_;
  std::vector<Message> messages_;  // by their readers
  StageGraph whole_;
  kernels::StageParameters parameters_;
  kernels::KernelObserver* observer_ = nullptr;
  std::int64_t rows_ = 0;
  std::vector<std::int64_t> samples_;
};

}  // namespace millrace::probe
