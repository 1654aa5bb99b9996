// What the files of other planners say beyond a graph with costs: their machine, and the figures that only their own
// objective reads. Kept as the file has it, so that published numbers can be reproduced to the digit.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "graph/tensor.h"

namespace millrace {

/// dnn-partitioning JSON, for the objective max_load. An operator of the graph is a colour class (forward and backward
/// twins, and classes on a common cycle, folded into one). Seconds and bytes are the file's own unit.
struct SplitModel {
  struct Op {
    double accelerator_s = 0;
    double cpu_s = 0;
    double bytes = 0;
    bool on_accelerator = true;  ///< false: a CPU core must take it
    std::int64_t nodes = 1;      ///< of the file
    bool operator==(const Op&) const = default;
  };
  /// One producing node of the file: each device that holds it or reads it pays once, unless all is on one device.
  struct Transfer {
    OpId from = -1;
    std::vector<OpId> to;  ///< other operators that read it, ascending, each once; never empty
    double seconds = 0;
    bool operator==(const Transfer&) const = default;
  };
  std::vector<Op> ops;  ///< by operator
  std::vector<Transfer> transfers;
  int accelerators = 0;
  int cpus = 0;
  double memory_bytes = 0;  ///< of an accelerator
  bool operator==(const SplitModel&) const = default;
};

/// Piper JSON, for the objective time_per_sample.
struct TensorParallelModel {
  struct Variant {
    std::string id;  ///< "vanilla", "activation recomp"
    double time_per_sample = 0;
    double parameter_bytes = 0;
    double memory_a = 0;                                 ///< bytes for each live micro-batch
    double memory_b = 0;                                 ///< bytes once
    std::vector<std::pair<OpId, double>> sync_forward;   ///< bytes by producing neighbour, ascending
    std::vector<std::pair<OpId, double>> sync_backward;  ///< bytes by reading neighbour, ascending
    bool operator==(const Variant&) const = default;
  };
  struct Degree {
    int degree = 1;
    std::vector<Variant> variants;
    bool operator==(const Degree&) const = default;
  };
  struct Edge {
    OpId from = -1;
    OpId to = -1;
    double bytes = 0;
    bool operator==(const Edge&) const = default;
  };
  std::vector<std::vector<Degree>> ops;  ///< by operator, degrees ascending
  std::vector<Edge> edges;
  int devices = 0;
  double memory_bytes = 0;
  double bytes_per_second = 0;
  std::int64_t batch = 0;  ///< micro-batches of a batch
  bool operator==(const TensorParallelModel&) const = default;
};

/// PipeDream graph.txt and DAPPLE profiles, for the objectives pipedream and dapple. Their figures are those of the
/// graph's operators, for one mini-batch of `profile_batch` samples counted as one sample of the graph.
struct LayerProfile {
  double profile_batch = 1;
  std::vector<bool> is_input;  ///< by operator: the description starts with "Input"
  bool operator==(const LayerProfile&) const = default;
};

struct Carried {
  std::string format;  ///< "dnn-partitioning", "piper", "pipedream"
  std::variant<std::monostate, SplitModel, TensorParallelModel, LayerProfile> extra{};
  bool operator==(const Carried&) const = default;
};

}  // namespace millrace
