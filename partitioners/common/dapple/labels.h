// Stages of DAPPLE's pipeline, first to last, as labels of a shortest path with several criteria.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "partitioners/common/dapple/placement.h"
#include "partitioners/common/pipedream/layer_network.h"
#include "plan/published/dapple.h"

namespace millrace::partitioners {

/// One number of pipelines.
struct DappleQuestion {
  const Prefixes* prefixes = nullptr;
  const PrefixFigures* figures = nullptr;
  double scale = 1;  ///< seconds and activations of the batch over those of the profile
  int pipelines = 1;
  std::int64_t micro_batches = 1;
  std::optional<int> stages{};  ///< of a pipeline; none: any number
};

/// Stages up to a prefix.
struct DappleLabel {
  std::size_t prefix = 0;
  int previous = -1;
  int stages = 0;
  int replicas = 0;  ///< of the last stage
  int devices = 0;   ///< of a pipeline, so far
  double block = 0;  ///< seconds of the slowest stage for one micro-batch
  double transfers = 0;
  std::vector<plan::DappleReduction> reductions;  ///< those that can still be exposed
  StagePlacement placement;                       ///< of the last stage
  std::vector<int> left;                          ///< devices on each server
};

class DappleLabels {
 public:
  DappleLabels(const DappleQuestion& question, const Servers& servers, std::chrono::steady_clock::time_point deadline);

  /// Stages of the best plan below `limit`, first to last; none where there is no such plan.
  std::vector<DappleLabel> below(double limit);
  double value() const { return best_; }  ///< of that plan
  bool late() const { return late_; }

 private:
  double fill() const;
  double crossing(std::size_t prefix) const;  // bytes for one micro-batch
  double block_of(std::size_t from, std::size_t to, int replicas) const;
  double least_latency(const DappleLabel& label) const;
  bool dominates(const DappleLabel& a, const DappleLabel& b) const;
  void extend(int index, std::size_t to);
  void keep(DappleLabel label);

  DappleQuestion question_;
  const Servers& servers_;
  std::chrono::steady_clock::time_point deadline_;
  int devices_;  // of a pipeline
  std::vector<DappleLabel> labels_;
  /// Labels that end at one prefix, by a hash of the devices left and of the last servers.
  std::vector<std::unordered_map<std::size_t, std::vector<int>>> at_;
  double best_ = 0;
  int best_label_ = -1;
  bool late_ = false;
};

}  // namespace millrace::partitioners
