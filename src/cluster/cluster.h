// The machine that a plan is made for: devices in rank order, the nodes that hold them and the links between them.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "cluster/device.h"

namespace millrace::cluster {

inline constexpr BytesPerSecond kUnlimited{std::numeric_limits<double>::infinity()};

/// A message of n bytes takes latency + n / bandwidth. Infinite bandwidth: unlimited.
struct Link {
  BytesPerSecond bandwidth{};
  Seconds latency{};

  bool operator==(const Link&) const = default;
  Seconds time(Bytes amount) const { return latency + amount / bandwidth; }
};

/// One host.
struct Node {
  std::string name;
  Link link{};  ///< between its devices

  bool operator==(const Node&) const = default;
};

/// Nodes that share a faster network than all do, such as a rack: nodes [0, n), [n, 2n), … of the cluster.
struct Tier {
  int nodes = 1;  ///< of each group
  Link link{};    ///< between its nodes

  bool operator==(const Tier&) const = default;
};

/// Between nodes; each node has one port of this bandwidth.
struct Network {
  Link link{};
  double oversubscription = 1.0;  ///< 2: half of the bandwidth is left when all nodes talk
  std::vector<Tier> tiers{};      ///< smallest groups first; none: all nodes share `link` alike

  bool operator==(const Network&) const = default;
};

/// What the computers behind the devices add: alike on all nodes.
struct Host {
  Seconds dispatch{};  ///< of one operator by the process that feeds a device: computation never runs ahead of it
  double spread = 0;   ///< relative standard deviation of the speeds of like devices

  bool operator==(const Host&) const = default;
};

enum class Kind : std::uint8_t {
  local,     ///< the ranks of this job
  described  ///< what a file says
};

/// Device k is rank k of the job (INTERFACES 9).
class Cluster {
 public:
  /// `node_of` gives the node of each device.
  /// \throws InvalidInput  no devices, lists of different lengths, a node that does not exist, or tiers that do not
  /// contain each other.
  Cluster(std::string name, Kind kind, std::vector<Device> devices, std::vector<int> node_of, std::vector<Node> nodes,
          Network network, bool emulated = false);

  const std::string& name() const { return name_; }
  Kind kind() const { return kind_; }
  bool emulated() const { return emulated_; }  ///< modelled times, real messages (INTERFACES 4)

  int size() const { return static_cast<int>(devices_.size()); }
  const std::vector<Device>& devices() const { return devices_; }
  const Device& device(int index) const { return devices_[static_cast<std::size_t>(index)]; }
  /// The first device that equals this one: costs are the same, so they are asked for once.
  int first_alike(int device) const { return first_alike_[static_cast<std::size_t>(device)]; }
  const std::vector<Node>& nodes() const { return nodes_; }
  int node_of(int device) const { return node_of_[static_cast<std::size_t>(device)]; }
  const Network& network() const { return network_; }
  const Host& host() const { return host_; }
  void set_host(Host host) { host_ = host; }

  /// The link that two devices share: that of their node, else of the smallest tier that holds both nodes, else the
  /// network's with oversubscription taken off. A device with itself: unlimited, no latency.
  Link link(int a, int b) const;

  bool operator==(const Cluster&) const = default;

 private:
  std::string name_;
  Kind kind_;
  bool emulated_;
  std::vector<Device> devices_;
  std::vector<int> first_alike_;
  std::vector<int> node_of_;
  std::vector<Node> nodes_;
  Network network_;
  Host host_{};
};

}  // namespace millrace::cluster
