// Operators split inside stages: `plan.tensor_parallel` devices for each replica, and what each of them computes.
#pragma once

#include <memory>
#include <vector>

#include "app/session.h"
#include "plan/plan.h"
#include "plan/stage_parts.h"

namespace millrace::app {

/// The cluster as plans see it that give every replica `tensor` neighbouring devices: each as one device that is so
/// many times as fast and large. \throws InvalidInput  devices that this does not divide.
cluster::Cluster grouped(const cluster::Cluster& cluster, int tensor, const std::string& key);

/// A plan for the grouped cluster becomes one for the devices themselves.
void spread(Plan& plan, int tensor);

/// By flat stage index; empty where no stage is tensor-parallel.
std::vector<std::shared_ptr<const StageParts>> parts_of(const Session& session, const Plan& plan);

/// Annotations are for `shard` and for tensor-parallel stages.
/// \throws InvalidInput  what such plans do not keep: a mesh of other axes, annotations without tensor_parallel.
void check_annotations(const Experiment& experiment);

}  // namespace millrace::app
