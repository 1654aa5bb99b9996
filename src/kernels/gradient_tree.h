// Sums the gradients of the samples of a batch in the order of one binary tree, whatever part of the batch is here.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "kernels/precision.h"

namespace millrace::kernels {

/// A node of the tree over the rows of a batch: rows [index · 2^level, (index + 1) · 2^level). Its sum is that of its
/// halves, left + right; a half without rows adds nothing. So the root is a function of the leaves and their number
/// alone.
struct TreeNode {
  int level = 0;
  std::int64_t index = 0;
  auto operator<=>(const TreeNode&) const = default;

  std::int64_t begin() const { return index << level; }
  std::int64_t end(std::int64_t batch) const;
  TreeNode parent() const { return {level + 1, index / 2}; }
  TreeNode left() const { return {level - 1, 2 * index}; }
  TreeNode right() const { return {level - 1, 2 * index + 1}; }
  TreeNode sibling() const { return {level, index ^ 1}; }
};

/// The root over `batch` rows.
TreeNode tree_root(std::int64_t batch);

/// The nodes that the rows of this rank have come to: two halves become one as soon as both are there, so that about
/// log2(batch) nodes are held for each interval of rows.
class GradientTree {
 public:
  /// \param elements  numbers of one sample's gradients.
  GradientTree(std::int64_t elements, Precision precision) : elements_(elements), precision_(precision) {}

  /// Forgets all nodes; the next rows are of a batch of that many.
  void begin(std::int64_t batch);
  /// Makes memory for that many nodes, so that add() allocates nothing.
  void reserve(std::size_t nodes);
  /// The gradients of one row, given once.
  void add(std::int64_t row, const void* gradients);

  /// A node that is here, null otherwise.
  void* find(TreeNode node) const;

  std::int64_t bytes() const;

 private:
  using Buffer = std::unique_ptr<std::byte[]>;

  std::int64_t elements_;
  Precision precision_;
  std::int64_t batch_ = 0;
  std::map<TreeNode, Buffer> nodes_;
  std::vector<std::map<TreeNode, Buffer>::node_type> free_;  // entries of the map, with their memory
};

/// sum += term
void add_gradients(void* sum, const void* term, std::int64_t count, Precision precision);

/// Most nodes that are held at once while rows come in this order.
std::size_t most_tree_nodes(std::span<const std::int64_t> rows, std::int64_t batch);

}  // namespace millrace::kernels
