// What partitioners see where replicas have several devices: each group of them as one device.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "planner/search.h"
#include "planner/tensor_split.h"

namespace millrace::planner {

/// Devices that share the operators of a replica, as one device each: what partitioners see of them.
/// \pre  `tensor` divides the devices.
cluster::Cluster device_groups(const cluster::Cluster& cluster, int tensor, std::optional<Bytes> memory_limit);

/// A plan of groups becomes one of the devices themselves.
void spread(Plan& plan, int tensor);

/// Times of those groups: an operator takes what its slowest part does and the collectives that stand behind it, all of
/// the graph on one group. `split` is that of the devices.
std::unique_ptr<cost::CostModel> group_costs(const Graph& graph, const cluster::Cluster& cluster,
                                             const cost::CostModel& cost, const TensorSplit& split, int tensor,
                                             const Plan& like);

/// Candidates of a search over groups become plans of the devices, by `apart`, and are judged anew by `problem`, which
/// is that of the devices: what does not fit is refused, and the least memory is what the leanest of them holds. Best
/// first. \param device_memory  what the ranks of a plan hold, from the devices that run it; empty: not known.
void take_groups_apart(const plan::Problem& problem, const std::function<void(Plan&)>& apart,
                       const std::function<std::optional<ProgramMemory>(const Plan&)>& device_memory, Ranking& ranking);

}  // namespace millrace::planner
