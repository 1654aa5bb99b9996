// The shipped machines that published training steps ran on.
#pragma once

#include <map>
#include <string>

#include "cluster/cluster.h"
#include "planner/measured_steps.h"

namespace millrace::app {

/// Loads the machine of a row by what its column `gpu` says, once each.
class StepMachines {
 public:
  /// Lives as long as this. \throws InvalidInput  when no machine is known for it.
  const cluster::Cluster& of(const planner::MeasuredStep& row);

 private:
  const cluster::Cluster& load(const std::string& name);

  std::map<std::string, cluster::Cluster> loaded_;
};

}  // namespace millrace::app
