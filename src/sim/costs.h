// What things cost in simulated time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/units.h"
#include "program/instruction.h"

namespace millrace::sim {

/// Every function is called with what the program says; none may be empty. zero_costs() is a start.
struct SimCosts {
  /// One forward, backward, backward_input or backward_weight of `rows` rows of a stage (flat index) on a rank.
  std::function<Seconds(InstructionKind kind, std::int32_t stage, int rank, std::int64_t rows)> compute;
  /// One message, from its send to its arrival.
  std::function<Seconds(Bytes bytes, int from, int to)> transfer;
  /// One all-reduce of `bytes` over `owners` (two or more ranks).
  std::function<Seconds(Bytes bytes, std::span<const int> owners)> all_reduce;
  /// The optimizer step over `bytes` of parameters on a rank.
  std::function<Seconds(Bytes bytes, int rank)> update;
  std::int64_t bytes_per_element = 4;
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
