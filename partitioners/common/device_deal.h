// Which devices the positions of equal pipelines are: queues from whose ends the stages of a pipeline take.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "plan/problem.h"

namespace millrace::partitioners {

/// Devices of each queue that a stage, or a row of stages, takes.
using Counts = std::vector<int>;

/// Every pipeline has the same queues; a position of a queue is one device in each pipeline. Stages take from queues'
/// fronts in their order, so the last stage has the last devices. Few kinds of devices: a queue for each kind, and any
/// stage may take any number from each. Many kinds: one queue, and its order decides.
class DeviceDeal {
 public:
  /// `queues`: devices of each queue, by position, within a position by pipeline.
  DeviceDeal(int pipelines, std::vector<std::vector<int>> queues) : pipelines_(pipelines), queues_(std::move(queues)) {}

  int pipelines() const { return pipelines_; }
  std::size_t queues() const { return queues_.size(); }
  int count(std::size_t queue) const { return static_cast<int>(queues_[queue].size()) / pipelines_; }
  Counts counts() const;
  int device(int pipeline, std::size_t queue, int position) const {
    return queues_[queue][static_cast<std::size_t>(position * pipelines_ + pipeline)];
  }
  /// Devices of a stage in one pipeline, queue by queue, when the stages after it have `behind`.
  std::vector<int> devices(int pipeline, const Counts& behind, const Counts& taken) const;
  bool operator==(const DeviceDeal&) const = default;

 private:
  int pipelines_;
  std::vector<std::vector<int>> queues_;
};

/// The deals to try. Equal devices: the cluster's order, so that consecutive stages fill a node. Up to four kinds: one
/// deal, where a stage may take of each. More: by falling speed, by rising speed, by falling memory and in the
/// cluster's order (METHODS 6). `speeds`: plan::device_speeds().
std::vector<DeviceDeal> deals(const plan::Problem& problem, int pipelines, std::span<const double> speeds);

}  // namespace millrace::partitioners
