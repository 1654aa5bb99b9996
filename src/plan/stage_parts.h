// What each device of a tensor-parallel stage computes and holds: made by sharding, carried by programs, run by ranks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "graph/stage_graph.h"

namespace millrace {

/// How the devices of one replica hold a tensor together.
struct Holding {
  enum class Kind : std::uint8_t {
    whole,  ///< each all of it
    part,   ///< device t the interval [borders[t], borders[t + 1]) of dimension `dim`
    term    ///< the tensor is the sum of what they hold
  };
  Kind kind = Kind::whole;
  int dim = -1;  ///< without the batch axis, which is not split inside a stage
  std::vector<std::int64_t> borders{};

  bool operator==(const Holding&) const = default;
};

/// An operator of the parts that brings a tensor from one holding to another, and its gradient back.
struct PartExchange {
  OpId op = -1;      ///< of the parts' graphs
  OpId behind = -1;  ///< of the whole graph: the operator that makes the tensor, else the one that comes before
  OpId reader = -1;  ///< of the whole graph: the first operator behind the exchange; its size where there is none
  Dims dims{};       ///< of the whole tensor, one sample
  std::int64_t element_bytes = 4;
  Holding from{}, to{};
  Holding gradient_from{}, gradient_to{};
  bool has_gradient = true;
};

/// An operator whose kernel knows which part of a tensor it has.
struct SplitOperator {
  enum class Kind : std::uint8_t {
    table,    ///< embedding of some rows of its table: zeros for indices that it lacks
    classes,  ///< cross-entropy of some classes: it takes maxima and sums over all devices
    mask      ///< dropout of some elements: the mask is that of the whole sample
  };
  OpId op = -1;  ///< of the parts' graphs
  OpId whole = -1;
  Kind kind = Kind::mask;
  Dims dims{};  ///< of the whole tensor that is split: table, logits, or what is masked
  Holding holding{};
};

/// What one device computes.
struct StagePart {
  std::shared_ptr<const Graph> graph;
  StageGraph stage{};  ///< of `graph`
};

/// Operators and tensors have the same numbers in the graphs of all devices. Tensors at the border are whole.
struct StageParts {
  std::vector<StagePart> devices;
  std::vector<OpId> whole_op;                ///< by operator of the parts; of an exchange PartExchange::reader
  std::map<TensorId, TensorId> part_of{};    ///< tensors of the border, parameters and buffers: from the whole graph's
  std::map<TensorId, Holding> parameters{};  ///< and buffers, by tensor of the whole graph
  std::vector<PartExchange> exchanges{};     ///< by `op`, ascending
  std::vector<SplitOperator> split{};
  /// Operator of the parts and position of its parameter that only the first device adds: a bias behind a sum.
  std::vector<std::pair<OpId, std::size_t>> terms{};
  /// Tensor and operator of the parts: every device computes this gradient whole, that of the first counts.
  std::vector<std::pair<TensorId, OpId>> repeated{};

  /// By operator of the whole graph and device: which part of its work the device does. Operators that all do whole are
  /// left out.
  std::map<OpId, std::vector<double>> shares{};

  double share(OpId op, std::size_t device) const {
    const auto found = shares.find(op);
    return found == shares.end() ? 1.0 : found->second[device];
  }
  /// Operators of the parts that run again where those of the whole graph do. Exchanges behind a dropped operator are
  /// made again with it. \param whole  ascending.
  std::vector<OpId> recomputed(std::span<const OpId> whole) const;
  int size() const { return static_cast<int>(devices.size()); }
  bool holds_whole(TensorId parameter) const { return parameters.at(parameter).kind == Holding::Kind::whole; }
};

}  // namespace millrace
