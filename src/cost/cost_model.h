// What planning asks about time: operators on devices, messages and reductions between them. Analytic figures,
// measured profiles and imported ones answer alike.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/units.h"
#include "cluster/cluster.h"
#include "graph/graph.h"

namespace millrace::cost {

/// Times of one operator for one micro-batch on one device.
struct OpTime {
  Seconds forward{};
  Seconds backward_input{};
  Seconds backward_weight{};

  Seconds backward() const { return backward_input + backward_weight; }
  Seconds total() const { return forward + backward(); }
};

/// Times of one graph on one cluster. Implementations are pure: the same question has the same answer.
class CostModel {
 public:
  virtual ~CostModel() = default;

  /// Time of `op` on `rows` samples on device `device`; zero for 0 rows. Time per row must not grow with rows: the
  /// lower bounds of plan/bounds.h rest on it.
  virtual OpTime op_time(OpId op, std::int64_t rows, int device) const = 0;

  /// Time of one message between two devices, start to end.
  virtual Seconds transfer_time(Bytes amount, int from, int to) const = 0;

  /// Time of a sum of `amount` bytes over all of `devices`, the result on each; zero for fewer than two.
  virtual Seconds all_reduce_time(Bytes amount, std::span<const int> devices) const = 0;

  /// Time of the optimizer step over `amount` bytes of parameters; none: not known, so that the bandwidth of the
  /// device's memory tells.
  virtual std::optional<Seconds> update_time(Bytes /*amount*/, int /*device*/) const { return std::nullopt; }
};

}  // namespace millrace::cost
