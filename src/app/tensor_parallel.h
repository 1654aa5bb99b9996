// Operators split inside stages: `plan.tensor_parallel` devices for each replica, and what each of them computes.
#pragma once

#include <memory>
#include <vector>

#include "app/session.h"
#include "plan/plan.h"
#include "planner/device_groups.h"
#include "planner/tensor_split.h"

namespace millrace::app {

/// What plans of the session are split by: the same for search, simulation, memory forecast and run. Made when it is
/// first asked for. \throws InvalidInput  as shard::PlanSplitter.
const planner::TensorSplit& split_of(const Session& session);

/// By flat stage index; empty where no stage is tensor-parallel.
/// \throws InvalidInput  settings that such plans do not go with.
std::vector<std::shared_ptr<const StageParts>> parts_of(const Session& session, const Plan& plan);

/// The devices of the session in groups of plan.tensor_parallel, with their costs. Groups that do not share operators
/// (app/batch_parts.h) are devices that are as many times as fast.
struct DeviceGroups {
  std::unique_ptr<const cluster::Cluster> cluster;
  std::unique_ptr<const cost::CostModel> device_cost;
  std::unique_ptr<const planner::TensorSplit> split;  // none where they do not
  std::unique_ptr<const cost::CostModel> cost;
};
/// \throws InvalidInput  devices that it does not divide.
DeviceGroups groups_of(const Session& session, bool share_operators);

/// The experiment's annotations; errors of them name the line.
std::vector<shard::Annotation> cited_annotations(const Experiment& experiment);

/// Annotations are for `shard` and for tensor-parallel stages.
/// \throws InvalidInput  what such plans do not keep: a mesh of other axes, annotations without tensor_parallel.
void check_annotations(const Experiment& experiment);

}  // namespace millrace::app
