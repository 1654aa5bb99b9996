// Where the gradients of a stage's parameters and buffers lie in memory.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "graph/factored_gradient.h"
#include "graph/stage_graph.h"

namespace millrace {

/// In elements. A tensor that k operators of the stage use has k accumulators, so that their sum has one order.
struct GradientPlaces {
  struct Place {
    std::int64_t first = 0;                           ///< of the gradient itself
    FactoredShape factors{};                          ///< with rows: these lie there in its place
    std::vector<std::pair<OpId, std::int64_t>> uses;  ///< operator, first element of its accumulator; in operator order

    bool operator==(const Place&) const = default;
  };
  std::vector<Place> places;  ///< in storage order
  std::int64_t elements = 0;  ///< of all of it
  std::int64_t part = 0;      ///< first element of the room for a part of what lies there as factors

  bool operator==(const GradientPlaces&) const = default;
};

/// One gradient after the other, each at the place that its tensor has among the values. The first use accumulates in
/// the gradient itself, each further one behind all gradients, and then the room for parts of those kept as factors.
/// \param factors  by position in `order`: what is kept in place of the gradient; empty: nothing is.
GradientPlaces gradient_places(const StageGraph& stage, std::span<const TensorId> order,
                               std::span<const FactoredShape> factors = {});

/// Puts the room for parts behind all that is there.
void add_part_of_factors(GradientPlaces& places);

}  // namespace millrace
