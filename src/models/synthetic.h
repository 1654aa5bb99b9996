// Made-up graphs of `cost` operators, to measure planners at sizes and shapes that no network at hand has.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace millrace::models {

/// How operators are wired, and what `width` then means.
enum class SyntheticShape : std::uint8_t {
  chain,            ///< each reads the one before; the width is 1
  series_parallel,  ///< nested blocks of parallel branches that join again; at most `width` operators are independent
  layered,          ///< layers of `width` operators that read one or two of the layer before
  nasnet_cells,     ///< cells of `width` branches on the outputs of the two cells before (arXiv 1707.07012, figure 4)
  skip_heavy,       ///< a chain over which `width` other outputs wait to be read at any time
  random_dag        ///< `width` chains with random reads across them
};

/// In the order of SyntheticShape.
const std::vector<std::string>& synthetic_shape_names();
/// \pre one of these names.
SyntheticShape synthetic_shape(std::string_view name);

struct SyntheticOptions {
  SyntheticShape shape = SyntheticShape::chain;
  std::int64_t operators = 1000;  ///< exactly; at least 1
  /// At least 1. Graphs with too few operators for it are as wide as they can be.
  std::int64_t width = 8;
  std::uint64_t seed = 1;
};

/// One source; the same graph from the same options on any machine. Figures are log-uniform: 10 us to 1 ms a sample,
/// outputs of 64 KiB to 2 MiB, and for half of the operators 16 KiB to 4 MiB of parameters; operators that only join
/// take a hundredth of the time.
Graph make_synthetic(const SyntheticOptions& options);

}  // namespace millrace::models
