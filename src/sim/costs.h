// What things cost in simulated time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/units.h"
#include "program/instruction.h"
#include "sim/job.h"

namespace millrace::sim {

/// Every function is called with what the program says; only those of ports may be empty. zero_costs() is a start.
struct SimCosts {
  /// One forward, backward, backward_input or backward_weight of `rows` rows of a stage (flat index) on a rank.
  std::function<Seconds(InstructionKind kind, std::int32_t stage, int rank, std::int64_t rows)> compute;
  /// One message alone, from its send to its arrival. What a message of no bytes takes is its latency: it passes while
  /// the link serves others.
  std::function<Seconds(Bytes bytes, int from, int to)> transfer;
  /// One all-reduce of `bytes` over `owners` (two or more ranks), alone.
  std::function<Seconds(Bytes bytes, std::span<const int> owners)> all_reduce;
  /// The optimizer step over `bytes` of parameters on a rank.
  std::function<Seconds(Bytes bytes, int rank)> update;
  std::int64_t bytes_per_element = 4;

  /// What a message and a collective share with others, for Contention::dynamic; empty: nothing.
  std::function<std::vector<PortUse>(int from, int to)> message_ports{};
  std::function<std::vector<PortUse>(std::span<const int> ranks)> collective_ports{};
  std::int32_t ports = 0;
};

/// Everything takes no time.
inline SimCosts zero_costs() {
  SimCosts costs;
  costs.compute = [](InstructionKind, std::int32_t, int, std::int64_t) { return Seconds(0); };
  costs.transfer = [](Bytes, int, int) { return Seconds(0); };
  costs.all_reduce = [](Bytes, std::span<const int>) { return Seconds(0); };
  costs.update = [](Bytes, int) { return Seconds(0); };
  return costs;
}

}  // namespace millrace::sim
