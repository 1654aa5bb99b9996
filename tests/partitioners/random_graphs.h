// For tests: directed acyclic graphs of cost operators, drawn from a seed.
#pragma once

#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "base/random.h"
#include "graph/graph_builder.h"

namespace millrace::testing_support {

/// Whole numbers from a seed, the same on every machine.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed, "test graph") {}
  /// 0 … bound − 1.
  int operator()(int bound) { return static_cast<int>(random_.below(static_cast<std::uint64_t>(bound), count_++)); }

 private:
  Random random_;
  std::uint64_t count_ = 0;
};

/// Figures that are small whole numbers: forward 1 … 4 s, backward as much again for each of its two parts.
inline OpFigures drawn_figures(Draw& draw) {
  const double forward = 1 + draw(4);
  return {.forward_s = forward,
          .backward_input_s = forward,
          .backward_weight_s = 1.0 + draw(2),
          .parameter_bytes = 4 * draw(6),
          .output_bytes = 1 + draw(8),
          .saved_bytes = draw(10)};
}

/// `size` operators; each reads up to two of the `reach` before it.
inline Graph random_graph(int size, int reach, std::uint64_t seed) {
  Draw draw(seed);
  GraphBuilder builder("random");
  std::vector<TensorId> outputs;
  for (int i = 0; i < size; ++i) {
    std::vector<TensorId> inputs;
    for (int k = i == 0 ? 0 : draw(3); k > 0; --k) {
      const TensorId input = outputs[static_cast<std::size_t>(i - 1 - draw(std::min(i, reach)))];
      if (inputs.empty() || inputs[0] != input) inputs.push_back(input);
    }
    outputs.push_back(builder.add_cost(fmt::format("n{}", i), inputs, drawn_figures(draw)));
  }
  return builder.build();
}

}  // namespace millrace::testing_support
