// What one device holds of a tensor along one axis of a device mesh: a part, the whole, or a term of a sum (METHODS 7).
#pragma once

#include <array>
#include <compare>
#include <cstdint>

namespace millrace::shard {

inline constexpr int kMaximumAxes = 4;

struct Property {
  enum class Kind : std::uint8_t {
    unset,        ///< not decided yet
    replicated,   ///< B: every device holds the whole
    split,        ///< S(dim): each device holds one interval of the dimension
    partial_sum,  ///< P(sum): the whole is the sum of what the devices hold
    partial_max   ///< P(max): the whole is the largest of what the devices hold
  };
  Kind kind = Kind::unset;
  std::int8_t dim = 0;     ///< of split: counted with the batch axis, which is dimension 0 of batched tensors
  std::int16_t ratio = 0;  ///< of split: Mesh::ratios, 0 for parts of equal size

  auto operator<=>(const Property&) const = default;
  constexpr bool is_set() const { return kind != Kind::unset; }
  constexpr bool is_split() const { return kind == Kind::split; }
  constexpr bool is_partial() const { return kind == Kind::partial_sum || kind == Kind::partial_max; }
};

inline constexpr Property kReplicated{Property::Kind::replicated, 0, 0};
inline constexpr Property kPartialSum{Property::Kind::partial_sum, 0, 0};
inline constexpr Property kPartialMax{Property::Kind::partial_max, 0, 0};
constexpr Property split(int dim, int ratio = 0) {
  return {Property::Kind::split, static_cast<std::int8_t>(dim), static_cast<std::int16_t>(ratio)};
}

/// One property for each axis of the mesh; the entries behind them stay unset.
using Placement = std::array<Property, kMaximumAxes>;

}  // namespace millrace::shard
