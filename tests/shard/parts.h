// Numbers of a tensor cut into the parts of devices and put together again.
#pragma once

#include <vector>

#include "shard/reshard.h"

namespace millrace::shard::testing {

using Numbers = std::vector<double>;
/// What each device of a mesh holds.
using Parts = std::vector<Numbers>;

/// The elements of `part` out of those of `whole`, row-major; both boxes in the tensor's own coordinates.
Numbers take(const Numbers& numbers, const Box& whole, const Box& part);
/// Adds `part` to where it lies in `whole`.
void add_to(Numbers& numbers, const Box& whole, const Numbers& part_numbers, const Box& part);

Box whole_box(const TensorView& view);

/// Terms of partial sums are made up so that they sum to the whole.
Parts cut(const Numbers& whole, const TensorView& view, const Placement& placement, const Mesh& mesh);
/// \throws std::logic_error  where two devices hold different copies.
Numbers join(const Parts& parts, const TensorView& view, const Placement& placement, const Mesh& mesh);

/// One step of a conversion: each device reads what the devices of its group hold, and nothing else.
/// \throws std::logic_error  where the group lacks an element.
Parts convert(const Parts& parts, const TensorView& view, const Step& step, const Mesh& mesh);

}  // namespace millrace::shard::testing
