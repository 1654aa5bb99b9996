// What is decided before collectives are inserted: the placement of every tensor and the signature of every operator.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "shard/op_table.h"
#include "shard/property.h"

namespace millrace::shard {

/// Why a tensor has its property on an axis.
struct Origin {
  enum class Kind : std::uint8_t {
    standard,    ///< nothing says more: replicated
    annotated,   ///< `source` is the number of the annotation
    propagated,  ///< `source` is the operator that it came through
    chosen       ///< by the automatic choice; `source` is the operator
  };
  Kind kind = Kind::standard;
  std::int32_t source = -1;
};

using Uses = std::array<Use, kMaximumAxes>;

struct Decision {
  std::vector<Placement> placements;  ///< by tensor: how it is kept
  std::vector<std::array<Origin, kMaximumAxes>> origins;
  std::vector<Uses> uses;  ///< by operator
};

/// The placement of operand `operand` under the signatures of all axes.
Placement placement(const OpTable& ops, OpId op, std::size_t operand, const Uses& uses, int axes);

}  // namespace millrace::shard
