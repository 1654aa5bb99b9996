// Extents, element sizes and indivisible units of every tensor of a graph for a number of rows.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"
#include "shard/intervals.h"
#include "shard/op_table.h"

namespace millrace::shard {

/// Dimensions that operators tie by a letter are cut alike. Where one of them can be cut in few places only (heads,
/// the major factor of a reshape), so are all: the output of a fused qkv has as many units as there are heads.
class TensorTable {
 public:
  /// \param split_rows  whether the batch axis may be cut.
  TensorTable(const Graph& graph, const OpTable& ops, std::int64_t rows, std::int64_t real_bytes = 4,
              bool split_rows = true);

  TensorView view(TensorId tensor) const;
  std::int64_t rows() const { return rows_; }

 private:
  std::int64_t rows_;
  std::vector<std::size_t> start_;  // of each tensor's dimensions; one more at the end
  std::vector<std::int64_t> extents_, units_;
  std::vector<std::int64_t> element_bytes_;
};

}  // namespace millrace::shard
