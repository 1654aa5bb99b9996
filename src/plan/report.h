// What is predicted for a plan: the figures of INTERFACES 3, under their names there, for tables, JSON and ranking.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/tensor.h"
#include "plan/memory.h"
#include "plan/op_list.h"

namespace millrace::plan {

/// One stage; times are of one micro-batch (the longest) on its slowest replica.
struct StageReport {
  int pipeline = 0;
  int index = 0;
  OpList ops{};
  std::vector<int> devices{};
  std::vector<double> shares{};
  double forward_s = 0;
  double backward_s = 0;
  double transfer_s = 0;        ///< activations in, and as long again for their gradients back
  double tensor_forward_s = 0;  ///< of collectives between the devices of a replica, beside forward_s
  double tensor_backward_s = 0;
  double reduction_s = 0;       ///< of its gradients over all owners, once an iteration
  std::int64_t send_bytes = 0;  ///< activations that it sends for one micro-batch, once per receiving stage
  std::int64_t parameter_bytes = 0;
  std::int64_t activation_bytes = 0;  ///< kept for one micro-batch, all replicas together
  std::int64_t live_micro_batches = 0;
  StageMemory memory{};           ///< of the replica with the most rows
  std::int64_t memory_bytes = 0;  ///< its total
};

/// 1 − exposed / total, by kind; none where nothing is sent or the source of the figures cannot tell.
struct HiddenCommunication {
  std::optional<double> p2p{};
  std::optional<double> gradients{};
  std::optional<double> tensor{};
};

struct PlanReport {
  std::string partitioner{};
  std::string order{};  ///< of the operators that was cut; empty where none was
  std::string schedule{};
  std::string objective{};
  std::optional<double> objective_value{};
  std::string objective_unit{};
  std::optional<double> bound{};  ///< proven: no plan of the problem has a better objective value
  std::string bound_source{};     ///< what proves it: "work / speed", "largest operator", "exact optimum", …
  std::optional<double> optimality_gap{};
  std::string certificate{};       ///< what its search proved: "the best of all plans …: 0.2542 s"; empty: nothing
  std::int64_t batch = 0;          ///< samples of an iteration
  std::int64_t micro_batches = 0;  ///< per pipeline
  int pipelines = 0;
  bool feasible = true;
  std::string why_not{};
  double planning_time_s = 0;
  std::string stopped_by{};  ///< "complete", or what ended the search early
  double iteration_time_s = 0;
  double makespan_s = 0;
  double throughput_samples_per_s = 0;
  double bottleneck_s = 0;
  std::int64_t peak_memory_bytes = 0;  ///< for a published objective by its own formula; 0: that has none
  std::int64_t mean_memory_bytes = 0;
  double memory_efficiency = 0;  ///< samples/s per GiB of the fullest rank
  double bubble_fraction = 0;
  std::int64_t bytes_injected = 0;
  int node_crossings = 0;  ///< pairs of stages of a pipeline that exchange tensors across nodes
  HiddenCommunication hidden_communication{};
  double balance = 0;
  double exposed_reduction_s = 0;  ///< of gradients, behind the last backward
  std::size_t limiting_stage = 0;  ///< the slowest, in `stages`
  std::string limiting_op{};       ///< its longest operator
  double limiting_op_s = 0;        ///< for one micro-batch, on its first replica
  std::vector<StageReport> stages{};
};

}  // namespace millrace::plan
