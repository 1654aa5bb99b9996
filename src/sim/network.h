// What messages and collectives cost on a cluster, and which ports they share, by the kind of contention.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cluster/cluster.h"
#include "cost/cost_model.h"
#include "program/instruction.h"
#include "sim/run.h"

namespace millrace::sim {

/// Times alone come from the cost model, taken as latency + bytes · β.
///
/// none: as they are. fixed: each node's port is divided among its devices, so messages between nodes have 1/d of it,
/// d being the larger number of devices of the two nodes, and collectives that leave a node the part of its members;
/// links inside a node are each pair's own. dynamic: devices have a port inside their node, nodes one to the network;
/// with oversubscription o each group of the largest tier (all nodes where there are no tiers) has an uplink that
/// carries nodes/o flows at full speed. A port has two directions; half duplex makes them one.
class Network {
 public:
  /// Both must outlive it.
  Network(const cluster::Cluster& cluster, const cost::CostModel& cost, Contention contention,
          bool half_duplex = false);

  Seconds transfer(Bytes bytes, int from, int to) const;
  /// all_reduce as the cost model says; all_gather and reduce_scatter half of it, all_to_all 1/n of that (METHODS 7).
  Seconds collective(InstructionKind kind, Bytes bytes, std::span<const int> ranks) const;

  /// A parameter server, the first of `ranks`: it takes the gradients of each other one and sends it the weights,
  /// 2(n−1) · bytes · β through its links and the latency of the slowest way there and back (METHODS 5).
  Seconds parameter_server(Bytes bytes, std::span<const int> ranks) const;

  std::vector<PortUse> message_ports(int from, int to) const;
  std::vector<PortUse> collective_ports(std::span<const int> ranks) const;
  /// Each way of a worker carries a part of the time, the server's ports carry all of it.
  std::vector<PortUse> parameter_server_ports(std::span<const int> ranks) const;
  std::int32_t ports() const;

 private:
  enum class Way : std::uint8_t { out, in };
  std::int32_t port(std::int32_t index, Way way) const;
  bool crosses_uplink(int node, int other) const;
  PortUse uplink(int node, Way way) const;
  int nodes_of_uplink() const;

  const cluster::Cluster* cluster_;
  const cost::CostModel* cost_;
  Contention contention_;
  bool half_duplex_;
  std::vector<int> devices_on_;  // by node
};

}  // namespace millrace::sim
