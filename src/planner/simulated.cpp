// The bridge from operator costs to instruction costs.
#include "planner/simulated.h"

namespace millrace::planner {
namespace {

// An optimizer step reads and writes the weight and its state and reads the gradient: about four passes over memory.
constexpr double kPassesOfUpdate = 4;

Seconds seconds_of(const cost::OpTime& time, InstructionKind kind) {
  switch (kind) {
    case InstructionKind::forward:
      return time.forward;
    case InstructionKind::backward:
      return time.backward();
    case InstructionKind::backward_input:
      return time.backward_input;
    case InstructionKind::backward_weight:
      return time.backward_weight;
    default:
      return Seconds(0);
  }
}

}  // namespace

sim::SimCosts costs_of(const Program& program, const cost::CostModel& cost, const cluster::Cluster& cluster,
                       std::int64_t bytes_per_element) {
  sim::SimCosts costs;
  costs.bytes_per_element = bytes_per_element;
  costs.compute = [&program, &cost](InstructionKind kind, std::int32_t stage, int rank, std::int64_t rows) {
    Seconds sum{};
    for (const OpId op : program.stages[static_cast<std::size_t>(stage)].ops) {
      sum += seconds_of(cost.op_time(op, rows, rank), kind);
    }
    return sum;
  };
  costs.transfer = [&cost](Bytes amount, int from, int to) { return cost.transfer_time(amount, from, to); };
  costs.all_reduce = [&cost](Bytes amount, std::span<const int> owners) {
    return cost.all_reduce_time(amount, owners);
  };
  costs.update = [&cluster](Bytes amount, int rank) {
    return kPassesOfUpdate * (amount / cluster.device(rank).bandwidth);
  };
  return costs;
}

}  // namespace millrace::planner
