// A machine with a device for each stage that schedules put on shared devices: partitioners cut for it as for any
// other.
#pragma once

#include <vector>

#include "plan/problem.h"

namespace millrace::planner {

/// Costs of virtual devices, which are real ones seen several times: what stays on one real device is no message.
class VirtualCost : public cost::CostModel {
 public:
  /// `real` must outlive it. `device_of`: the real device of each virtual one.
  VirtualCost(const cost::CostModel& real, std::vector<int> device_of)
      : real_(&real), device_of_(std::move(device_of)) {}

  cost::OpTime op_time(OpId op, std::int64_t rows, int device) const override;
  Seconds transfer_time(Bytes amount, int from, int to) const override;
  Seconds all_reduce_time(Bytes amount, std::span<const int> devices) const override;
  std::optional<Seconds> update_time(Bytes amount, int device) const override {
    return real_->update_time(amount, real(device));
  }

 private:
  int real(int device) const { return device_of_[static_cast<std::size_t>(device)]; }

  const cost::CostModel* real_;
  std::vector<int> device_of_;
};

/// The devices of `problem` as `device_of` names them, on their nodes. `part`: each has so much of its memory, as that
/// many virtual devices share it; 0: none is limited.
cluster::Cluster virtual_cluster(const plan::Problem& problem, const std::vector<int>& device_of, int part);

}  // namespace millrace::planner
