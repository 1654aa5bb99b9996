// What plans whose replicas have several devices are judged by: the parts of their stages, and what these exchange.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/units.h"
#include "plan/plan.h"
#include "plan/stage_parts.h"

namespace millrace::plan {

class TensorStages {
 public:
  virtual ~TensorStages() = default;

  /// By flat stage; null where a replica has one device. Empty where all have one. The same plan has the same parts.
  /// \throws InvalidInput  a plan that cannot be split so.
  virtual std::vector<std::shared_ptr<const StageParts>> parts(const Plan& plan) const = 0;

  /// Of one micro-batch on the devices of one replica.
  struct Exchanged {
    Seconds forward{};  ///< that its collectives take, one after the other
    Seconds backward{};
    Bytes moved{};  ///< in both passes, over all devices (METHODS 7)
  };
  virtual Exchanged exchanged(const Stage& stage, const StageParts& parts, std::int64_t rows,
                              std::span<const int> devices) const = 0;
};

/// Whether a stage of the plan has several devices a replica.
bool splits_operators(const Plan& plan);

}  // namespace millrace::plan
