// Finds the dimensions that are cut alike as classes of a union-find, and their common units.
#include "shard/tensor_table.h"

#include <numeric>

#include "graph/width.h"

namespace millrace::shard {
namespace {

class Classes {
 public:
  explicit Classes(std::size_t size) : parent_(size) { std::iota(parent_.begin(), parent_.end(), std::size_t{0}); }
  std::size_t find(std::size_t at) {
    while (parent_[at] != at) at = parent_[at] = parent_[parent_[at]];
    return at;
  }
  void join(std::size_t a, std::size_t b) { parent_[find(a)] = find(b); }

 private:
  std::vector<std::size_t> parent_;
};

}  // namespace

TensorTable::TensorTable(const Graph& graph, const OpTable& ops, std::int64_t rows, std::int64_t real_bytes,
                         bool split_rows)
    : rows_(rows) {
  for (const Tensor& tensor : graph.tensors()) {
    start_.push_back(extents_.size());
    if (tensor.shape.batched) extents_.push_back(rows);
    extents_.insert(extents_.end(), tensor.shape.dims.begin(), tensor.shape.dims.end());
    const std::int64_t of_real = is_wide(tensor) ? wide_bytes(real_bytes) : real_bytes;
    element_bytes_.push_back(tensor.shape.element == ElementType::real   ? of_real
                             : tensor.shape.element == ElementType::byte ? 1
                                                                         : 4);
  }
  start_.push_back(extents_.size());

  Classes classes(extents_.size());
  std::vector<std::int64_t> units = extents_;
  for (std::size_t t = 0; t < graph.tensors().size() && !split_rows; ++t) {
    if (graph.tensors()[t].shape.batched) units[start_[t]] = 1;
  }
  for (OpId op = 0; op < graph.size(); ++op) {
    for (int letter = 0; letter < ops.row(op).letter_count; ++letter) {
      const std::int64_t parts = ops.parts(op, letter);
      std::size_t first = extents_.size();
      for (const Operand& operand : ops.operands(op)) {
        const int dim = operand.dim_of(letter);
        if (dim < 0) continue;
        const std::size_t at = start_[static_cast<std::size_t>(operand.tensor)] + static_cast<std::size_t>(dim);
        if (parts > 0) units[at] = std::gcd(units[at], parts);
        if (first == extents_.size()) first = at;
        classes.join(at, first);
      }
    }
  }
  std::vector<std::int64_t> common(extents_.size(), 0);
  for (std::size_t i = 0; i < units.size(); ++i) common[classes.find(i)] = std::gcd(common[classes.find(i)], units[i]);
  units_.resize(extents_.size());
  for (std::size_t i = 0; i < units.size(); ++i) units_[i] = common[classes.find(i)];
}

TensorView TensorTable::view(TensorId tensor) const {
  const std::size_t first = start_[static_cast<std::size_t>(tensor)];
  const std::size_t count = start_[static_cast<std::size_t>(tensor) + 1] - first;
  return {{extents_.data() + first, count},
          {units_.data() + first, count},
          element_bytes_[static_cast<std::size_t>(tensor)]};
}

}  // namespace millrace::shard
