// The machine as published planners know it: equal devices, and links of one bandwidth on each level.
#pragma once

#include <optional>
#include <vector>

#include "plan/problem.h"

namespace millrace::plan {

/// What their formulas ask of one device.
struct EqualDevices {
  int count = 1;
  double speed = 1;                      ///< times of a file are divided by it
  std::optional<double> memory_bytes{};  ///< of the smallest
};

/// \throws InvalidInput  when devices differ in speed: the formulas know one kind.
EqualDevices equal_devices(const Problem& problem);

/// Machines that share links of one bandwidth; on the second level a machine is a node of the cluster.
struct Level {
  int machines = 1;
  double bytes_per_second = 0;
  int within = 1;  ///< machines of the level below
};

/// Innermost first: the devices of a node, then the nodes. One level where there is one node, or one device a node.
/// \throws InvalidInput  when nodes have different numbers of devices or links, or there are more than two levels.
std::vector<Level> machine_levels(const Problem& problem);

/// Bandwidth of the slowest link of the cluster.
double slowest_link(const Problem& problem);

}  // namespace millrace::plan
