// What things cost in simulated time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/units.h"
#include "graph/graph.h"
#include "program/instruction.h"
#include "sim/job.h"

namespace millrace::sim {

/// Computation of some operators of a stage: all of it, a segment between collectives, or what lies between two
/// reductions that start inside of it.
struct Piece {
  InstructionKind kind = InstructionKind::forward;  ///< forward, backward, backward_input, backward_weight, recompute
  std::int32_t stage = -1;                          ///< index in Program::stages
  int rank = 0;
  std::int64_t rows = 0;
  std::span<const OpId> ops;  ///< ascending
};

/// Every function is called with what the program says; zero_costs() is a start.
struct SimCosts {
  std::function<Seconds(const Piece&)> compute;
  /// One message alone, from its send to its arrival. What a message of no bytes takes is its latency: it passes while
  /// the link serves others.
  std::function<Seconds(Bytes bytes, int from, int to)> transfer;
  /// One all_reduce, all_gather, reduce_scatter or all_to_all of `bytes` logical bytes over two or more ranks, alone.
  std::function<Seconds(InstructionKind kind, Bytes bytes, std::span<const int> ranks)> collective;
  /// The optimizer step over `bytes` of parameters on a rank.
  std::function<Seconds(Bytes bytes, int rank)> update;
  /// Copying `bytes` of parameters aside on a rank: of an update that finds the newest weights stashed.
  std::function<Seconds(Bytes bytes, int rank)> copy;
  /// The sum of a bucket's gradients over its owners, alone; empty: an all_reduce.
  std::function<Seconds(Bytes bytes, std::span<const int> ranks)> reduction{};
  std::int64_t bytes_per_element = 4;

  /// What a message and a collective share with others, for Contention::dynamic; empty: nothing.
  std::function<std::vector<PortUse>(int from, int to)> message_ports{};
  std::function<std::vector<PortUse>(std::span<const int> ranks)> collective_ports{};
  std::function<std::vector<PortUse>(std::span<const int> ranks)> reduction_ports{};  ///< empty: those of a collective
  std::int32_t ports = 0;
};

/// Everything takes no time.
inline SimCosts zero_costs() {
  SimCosts costs;
  costs.compute = [](const Piece&) { return Seconds(0); };
  costs.transfer = [](Bytes, int, int) { return Seconds(0); };
  costs.collective = [](InstructionKind, Bytes, std::span<const int>) { return Seconds(0); };
  costs.update = [](Bytes, int) { return Seconds(0); };
  costs.copy = [](Bytes, int) { return Seconds(0); };
  return costs;
}

}  // namespace millrace::sim
