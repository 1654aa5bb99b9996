// What the shapes of made-up graphs share: operators with drawn figures, a count that is kept, and drawn numbers.
#pragma once

#include <string>
#include <vector>

#include "base/random.h"
#include "graph/graph_builder.h"
#include "models/synthetic.h"

namespace millrace::models {

class SyntheticBuilder {
 public:
  explicit SyntheticBuilder(const SyntheticOptions& options);

  std::int64_t left() const { return left_; }  ///< operators still to be added
  /// Operators added from here on carry this tag (Operator::layer).
  void layer(std::string name) { layer_ = std::move(name); }

  /// An operator that computes, or one that only joins its inputs. \pre left() > 0.
  TensorId compute(std::vector<TensorId> inputs) { return add(std::move(inputs), false); }
  TensorId join(std::vector<TensorId> inputs) { return add(std::move(inputs), true); }

  /// The next number of the shape's own stream, in [0, bound).
  std::int64_t below(std::int64_t bound);

  /// \pre left() == 0.
  Graph build() { return builder_.build(); }

 private:
  TensorId add(std::vector<TensorId> inputs, bool only_joins);

  GraphBuilder builder_;
  std::uint64_t seed_;
  Random shape_;
  std::uint64_t drawn_ = 0;
  std::int64_t left_;
  std::int64_t added_ = 0;
  std::string layer_;
};

/// Each adds all operators that are left.
void add_chain(SyntheticBuilder& graph);
void add_series_parallel(SyntheticBuilder& graph, std::int64_t width);
void add_layered(SyntheticBuilder& graph, std::int64_t width);
void add_nasnet_cells(SyntheticBuilder& graph, std::int64_t width);
void add_skip_heavy(SyntheticBuilder& graph, std::int64_t width);
void add_random_dag(SyntheticBuilder& graph, std::int64_t width);

}  // namespace millrace::models
