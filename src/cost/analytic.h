// Operator times from operation and byte counts: the roofline of a device.
#pragma once

#include <string>
#include <vector>

#include "cost/cost_model.h"

namespace millrace::cost {

/// `cost` operators take what their figures say, over the speed of the device; devices need no other figures for them.
/// The others: time = max(flops / (peak · efficiency), bytes / bandwidth) / speed + launch, for each pass of each
/// operator. An operator without a pass (no parameters: no backward-weight; nothing behind its inputs: no
/// backward-input) has time zero for it. Messages take latency + bytes / bandwidth, reductions the cheapest form of
/// METHODS 5.
class AnalyticCost : public CostModel {
 public:
  /// `graph` and `cluster` must outlive it. \throws InvalidInput  an unknown precision, or one that a device lacks and
  /// an operator needs.
  AnalyticCost(const Graph& graph, const cluster::Cluster& cluster, const std::string& precision = "fp32");

  OpTime op_time(OpId op, std::int64_t rows, int device) const override;
  Seconds transfer_time(Bytes amount, int from, int to) const override;
  Seconds all_reduce_time(Bytes amount, std::span<const int> devices) const override;

 private:
  struct Work {  // of one pass
    double flops_per_row = 0;
    double bytes_per_row = 0;
    double bytes_once = 0;  // parameters, read or written whatever the rows
    bool present = false;
  };
  struct OpWork {
    Work forward, backward_input, backward_weight;
    std::size_t kind = 0;                // of efficiency
    const OpFigures* figures = nullptr;  // of a `cost` operator
  };
  struct DeviceRate {
    std::vector<double> flops;  // reached, by kind of efficiency; speed applied
    double bandwidth = 0;
    double speed = 1;
    Seconds launch{};
  };

  static OpWork count(const Graph& graph, OpId op, std::int64_t real_bytes);
  static Seconds time(const Work& work, std::size_t kind, double rows, const DeviceRate& rate);

  const cluster::Cluster* cluster_;
  std::vector<OpWork> work_;
  std::vector<DeviceRate> rates_;
};

}  // namespace millrace::cost
