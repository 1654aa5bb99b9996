// How layers fall on stages, and what a layout must divide.
#include "planner/large_model.h"

#include <fmt/format.h>

#include "base/errors.h"

namespace millrace::planner {

std::vector<int> layers_of_stages(const Layout& layout) {
  const int stages = layout.stages();
  const int layers = static_cast<int>(layout.model.layers);
  if (stages > layers + 2) {
    throw InvalidInput(fmt::format("{} virtual stages, but only {} layers, an embedding and a head", stages, layers));
  }
  std::vector<int> counts(static_cast<std::size_t>(stages), layers / stages);
  if (layers % stages == 0) return counts;
  if ((layers + 2) % stages == 0 && stages > 1) {
    for (int& count : counts) count = (layers + 2) / stages;
    --counts.front();
    --counts.back();
    return counts;
  }
  for (int i = 0; i < layers % stages; ++i) ++counts[static_cast<std::size_t>(i)];
  return counts;
}

void check(const Layout& layout) {
  if (layout.global_batch % (layout.data * layout.micro_batch) != 0) {
    throw InvalidInput(fmt::format("a global batch of {} does not divide into {} replicas of micro-batches of {}",
                                   layout.global_batch, layout.data, layout.micro_batch));
  }
  layers_of_stages(layout);
}

}  // namespace millrace::planner
