// The kinds of devices that a cluster has: large clusters have few, so costs are asked once a kind.
#pragma once

#include <cstddef>
#include <vector>

#include "cluster/cluster.h"

namespace millrace::plan {

/// Devices that cost the same, the first of them standing for all.
struct DeviceKind {
  int device = 0;
  int count = 0;
};

/// The kinds in order of their first device. With more than `most` of them, devices that differ in nothing but name and
/// speed are told apart by about `most` steps of speed, and the fastest of a step stands for it: what is asked of it is
/// a lower bound on the time of the others. Devices of other make stay apart.
std::vector<DeviceKind> device_kinds(const cluster::Cluster& cluster, std::size_t most);

/// For each device the first that equals it, which stands for it where costs are asked.
std::vector<int> first_alike(const cluster::Cluster& cluster);

}  // namespace millrace::plan
