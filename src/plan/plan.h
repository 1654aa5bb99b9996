// The plan: where a graph is computed. A value type; its text form, checks and costs are functions beside it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/units.h"
#include "graph/tensor.h"
#include "plan/op_list.h"

namespace millrace {

/// A convex set of operators on one or more devices.
struct Stage {
  OpList ops;                   ///< ascending
  std::vector<int> devices;     ///< replica by replica; device k of the cluster is rank k
  std::vector<double> shares;   ///< of each micro-batch, by replica; sum 1
  int tensor_parallel = 1;      ///< devices of one replica
  OpList recompute;             ///< operators whose activations are dropped and computed again

  bool operator==(const Stage&) const = default;
};

/// A data-parallel group: all of the model, on its share of the batch.
struct Pipeline {
  double share = 1.0;
  std::int64_t micro_batches = 1;
  std::vector<int> warmup;  ///< forwards before the first backward, by stage; empty: the schedule's own
  std::vector<Stage> stages;

  bool operator==(const Pipeline&) const = default;
};

struct Plan {
  std::string model;
  std::string graph_digest;
  std::string schedule = "1f1b";
  std::map<std::string, std::string> schedule_options;  ///< by name, written as in YAML; what is not here is default
  Bytes bucket_size = 25_MiB;
  std::vector<Pipeline> pipelines;

  bool operator==(const Plan&) const = default;
};

/// Names one stage of one pipeline.
struct StageRef {
  int pipeline = 0;
  int stage = 0;
  bool operator==(const StageRef&) const = default;
};

}  // namespace millrace
