// Which interval of each dimension a device holds, for parts of equal size or in given ratios.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shard/mesh.h"

namespace millrace::shard {

struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end > begin ? end - begin : 0; }
  bool operator==(const Interval&) const = default;
};

/// One interval for each dimension.
using Box = std::vector<Interval>;

std::int64_t volume(const Box& box);
Box intersection(const Box& a, const Box& b);

/// Cuts `units` into `parts` by weights (none: equal), by largest remainder, ties to the first; every part gets at
/// least one where there are enough. Returns parts + 1 borders from 0 to `units`.
std::vector<std::int64_t> cut_units(std::int64_t units, int parts, const std::vector<double>& weights);

/// What a tensor is to a split: its extents (batch axis included) and how many indivisible units each has.
struct TensorView {
  std::span<const std::int64_t> extents;
  std::span<const std::int64_t> units;
  std::int64_t element_bytes = 4;

  std::int64_t bytes() const;
};

/// The part of the tensor that `device` holds; axes that split one dimension cut it in the order of the mesh.
Box box_of(const TensorView& tensor, const Placement& placement, const Mesh& mesh, int device);

/// Whether every device gets a part: no dimension is cut into more parts than it has units, none of size 1 is cut.
bool fits(const TensorView& tensor, const Placement& placement, const Mesh& mesh);

}  // namespace millrace::shard
