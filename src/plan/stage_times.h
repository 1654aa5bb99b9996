// Times of the stages of a plan: compute, transfers from earlier stages, and the reduction of gradients.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/closed_form.h"
#include "plan/plan_cuts.h"
#include "plan/problem.h"

namespace millrace::plan {

/// One stage of one pipeline; per micro-batch (the longest), on the slowest replica.
struct StageTimes {
  Seconds forward{};  ///< compute
  Seconds backward{};
  Seconds backward_weight{};  ///< the part of it that is for weights
  /// Activations from other stages; their gradients take as long again. Both count for the receiving stage, so that
  /// each tensor is charged once for each stage that reads it.
  Seconds transfer{};
  Seconds tensor_forward{};  ///< collectives inside a replica of several devices
  Seconds tensor_backward{};
  Bytes exchanged{};                 ///< by them, all replicas together
  Seconds busy{};                    ///< compute of all replicas together, over one micro-batch
  Bytes received{};                  ///< activations, from other devices, all replicas together
  Bytes sent{};                      ///< the same tensors, at their producer
  Seconds reduction{};               ///< of its gradients, over all owners
  std::vector<std::int64_t> rows{};  ///< of the longest micro-batch, by replica

  StageSeconds seconds() const { return {forward + tensor_forward + transfer, backward + tensor_backward + transfer}; }
};

/// Parameters with the same owners, reduced together.
struct Reduction {
  std::vector<StageRef> stages;
  std::vector<int> devices;  ///< ascending
  Bytes bytes{};
  Seconds time{};
};

struct PlanTimes {
  std::vector<std::vector<StageTimes>> stages;  ///< [pipeline][stage]
  std::vector<Reduction> reductions;
  PlanCuts cuts;
  /// Pairs of stages of a pipeline that exchange tensors and do not share one node.
  int node_crossings = 0;
};

/// Linear in operators and devices where pipelines are cut alike: equal stages on equal devices are timed once.
/// Devices that share links of one kind are taken to exchange a message in the same time.
/// \pre the plan is valid.
PlanTimes plan_times(const Plan& plan, const Problem& problem);

}  // namespace millrace::plan
