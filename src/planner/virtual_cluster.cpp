// Maps every question to the real devices.
#include "planner/virtual_cluster.h"

#include <algorithm>
#include <utility>

namespace millrace::planner {

cost::OpTime VirtualCost::op_time(OpId op, std::int64_t rows, int device) const {
  return real_->op_time(op, rows, real(device));
}

Seconds VirtualCost::transfer_time(Bytes amount, int from, int to) const {
  return real(from) == real(to) ? Seconds{} : real_->transfer_time(amount, real(from), real(to));
}

Seconds VirtualCost::all_reduce_time(Bytes amount, std::span<const int> devices) const {
  std::vector<int> group;
  for (const int device : devices) group.push_back(real(device));
  std::sort(group.begin(), group.end());
  group.erase(std::unique(group.begin(), group.end()), group.end());
  return real_->all_reduce_time(amount, group);
}

cluster::Cluster virtual_cluster(const plan::Problem& problem, const std::vector<int>& device_of, int part) {
  const cluster::Cluster& real = *problem.cluster;
  std::vector<cluster::Device> devices;
  std::vector<int> node_of;
  for (const int device : device_of) {
    cluster::Device& made = devices.emplace_back(real.device(device));
    const std::optional<Bytes> memory = problem.memory_of(device);
    made.memory.reset();
    if (memory && part > 0) made.memory = Bytes(memory->value() / part);
    node_of.push_back(real.node_of(device));
  }
  cluster::Cluster made(real.name(), real.kind(), std::move(devices), std::move(node_of), real.nodes(), real.network(),
                        real.emulated());
  made.set_host(real.host());
  return made;
}

}  // namespace millrace::planner
