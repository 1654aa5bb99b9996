// The bridge from operator costs to instruction costs.
#include "planner/simulated.h"

#include <map>
#include <memory>
#include <tuple>

#include "base/hash.h"
#include "base/limits.h"
#include "sim/network.h"

namespace millrace::planner {
namespace {

// Of a piece of computation: what its time depends on, its operators by their hash.
using PieceKey = std::tuple<InstructionKind, std::uint64_t, std::int64_t, int>;

// An optimizer step reads and writes the weight and its state and reads the gradient: about four passes over memory.
constexpr double kPassesOfUpdate = 4;
constexpr double kPassesOfCopy = 2;

Seconds seconds_of(const cost::OpTime& time, InstructionKind kind) {
  switch (kind) {
    case InstructionKind::forward:
    case InstructionKind::recompute:
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

sim::SimCosts costs_of(const cost::CostModel& cost, const cluster::Cluster& cluster, std::int64_t bytes_per_element,
                       const sim::Options& options) {
  const auto network = std::make_shared<sim::Network>(cluster, cost, options.contention, options.half_duplex);
  sim::SimCosts costs;
  costs.bytes_per_element = bytes_per_element;
  // Micro-batches and equal devices ask the same again and again.
  const auto known = std::make_shared<std::map<PieceKey, Seconds>>();
  costs.compute = [&cost, &cluster, known](const sim::Piece& piece) {
    const PieceKey key{piece.kind, hash64(std::as_bytes(piece.ops)), piece.rows, cluster.first_alike(piece.rank)};
    const auto [found, is_new] = known->try_emplace(key, Seconds(0));
    if (is_new) {
      for (const OpId op : piece.ops) found->second += seconds_of(cost.op_time(op, piece.rows, piece.rank), piece.kind);
    }
    return found->second;
  };
  costs.transfer = [network](Bytes amount, int from, int to) { return network->transfer(amount, from, to); };
  costs.collective = [network](InstructionKind kind, Bytes amount, std::span<const int> ranks) {
    return network->collective(kind, amount, ranks);
  };
  const bool server = options.reduction == sim::Reduction::parameter_server;
  if (server) {
    costs.reduction = [network](Bytes amount, std::span<const int> ranks) {
      return network->parameter_server(amount, ranks);
    };
  }
  const auto passes = [&cluster](Bytes amount, int rank, double count) {
    const BytesPerSecond bandwidth = cluster.device(rank).bandwidth;  // 0: not known
    return bandwidth > BytesPerSecond(0) ? count * (amount / bandwidth) : Seconds(0);
  };
  costs.update = [&cost, passes](Bytes amount, int rank) {
    const std::optional<Seconds> known = cost.update_time(amount, rank);
    return known ? *known : passes(amount, rank, kPassesOfUpdate);
  };
  costs.copy = [passes](Bytes amount, int rank) { return passes(amount, rank, kPassesOfCopy); };
  if (options.contention == sim::Contention::dynamic) {
    costs.message_ports = [network](int from, int to) { return network->message_ports(from, to); };
    costs.collective_ports = [network](std::span<const int> ranks) { return network->collective_ports(ranks); };
    if (server) {
      costs.reduction_ports = [network](std::span<const int> ranks) { return network->parameter_server_ports(ranks); };
    }
    costs.ports = network->ports();
  }
  return costs;
}

void take_times(const sim::Simulation& run, std::int64_t batch, plan::PlanReport& report) {
  report.iteration_time_s = run.iteration_time.value();
  report.makespan_s = run.makespan.value();
  report.throughput_samples_per_s = static_cast<double>(batch) / report.iteration_time_s;
  report.bubble_fraction = run.bubble_fraction;
  report.hidden_communication = {run.hidden(sim::Traffic::p2p), run.hidden(sim::Traffic::gradients),
                                 run.hidden(sim::Traffic::tensor)};
  report.memory_efficiency = report.throughput_samples_per_s / (static_cast<double>(report.peak_memory_bytes) / kGiB);
}

}  // namespace millrace::planner
