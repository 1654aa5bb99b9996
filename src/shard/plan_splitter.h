// From plans whose replicas have several devices to what each of those computes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "plan/plan.h"
#include "plan/stage_parts.h"
#include "shard/annotations.h"
#include "shard/sharding.h"

namespace millrace::shard {

struct PartRequest {
  std::vector<Annotation> annotations{};  ///< on the axis "tensor"; none: the automatic choice
  std::int64_t batch = 1;                 ///< rows of an iteration: choices are made by the costs of a micro-batch
  std::string precision = "fp32";
  std::int64_t real_bytes = 4;
  std::int64_t optimizer_bytes = 8;
  std::optional<Bytes> memory_limit{};  ///< of each device, beside the device's own
  bool within_memory = true;            ///< the automatic choice looks at those limits
};

/// What operators do is decided on the whole graph by analytic costs, so that it follows from the experiment and the
/// plan alone. The batch is not split: that is what replicas are for. Annotations are propagated once for all stages
/// with as many devices. The automatic choice is made for each set of stages that hold parameters together: parts
/// follow the speed of the slowest device at each place of their replicas, and where a stage does not fit so, memory is
/// considered too. What was found is kept: plans of a search have much in common.
class PlanSplitter {
 public:
  /// \throws InvalidInput  a precision that a device lacks. Both must outlive it.
  PlanSplitter(const Graph& graph, const cluster::Cluster& cluster, PartRequest request);

  /// One entry a stage, pipeline by pipeline; null where a replica has one device. Empty where all have one.
  /// \throws InvalidInput  faults of annotations; a parameter that two operators need in different parts.
  std::vector<std::shared_ptr<const StageParts>> parts(const Plan& plan) const;

 private:
  /// The devices that share the operators of some stages, place by place.
  struct Places {
    std::vector<int> slowest{};                   ///< device, the first of those that are alike
    std::vector<std::optional<Bytes>> memory{};   ///< least limit
    cluster::Link link{cluster::kUnlimited, {}};  ///< slowest
  };
  struct Component {
    std::vector<std::size_t> stages;  ///< flat
    int devices = 1;                  ///< of a replica
  };
  struct StageOf {
    const Stage* stage = nullptr;
    std::int64_t live = 1;  ///< micro-batches
  };

  std::vector<Component> components(const std::vector<StageOf>& stages) const;
  Places places(const Component& component, const std::vector<StageOf>& stages, std::int64_t rows) const;
  double seconds(int device, std::int64_t rows) const;
  const Sharded& decide(const Component& component, const std::vector<StageOf>& stages, std::int64_t rows,
                        std::int64_t micro_batches) const;
  Sharded made(const Places& places, std::int64_t rows, std::int64_t micro_batches, HeldOptions held,
               bool limited) const;
  /// The stage of the component that is furthest over a limit, if one is.
  std::optional<std::size_t> over_limit(const Component& component, const std::vector<StageOf>& stages,
                                        const Places& places, const Sharded& decided) const;

  const Graph& graph_;
  const cluster::Cluster& cluster_;
  PartRequest request_;
  std::unique_ptr<const cost::CostModel> cost_;
  mutable std::map<std::pair<int, std::int64_t>, double> seconds_;  // of the whole graph, by device and rows
  using Question = std::tuple<std::vector<int>, double, double, std::int64_t, std::int64_t, std::vector<std::int64_t>,
                              std::vector<OpId>, std::int64_t>;
  mutable std::map<Question, std::unique_ptr<const Sharded>> decided_;
  mutable std::map<std::tuple<const Sharded*, std::vector<OpId>, std::int64_t>, std::vector<Bytes>> held_;
  mutable std::map<std::pair<const Sharded*, std::vector<OpId>>, std::shared_ptr<const StageParts>> cut_;
};

}  // namespace millrace::shard
