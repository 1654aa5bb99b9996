// Joins halves as they come.
#include "kernels/gradient_tree.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace millrace::kernels {
namespace {

template <class Real>
void add(void* sum, const void* term, std::int64_t count) {
  auto* to = static_cast<Real*>(sum);
  const auto* from = static_cast<const Real*>(term);
  for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
}

}  // namespace

std::int64_t TreeNode::end(std::int64_t batch) const { return std::min(batch, (index + 1) << level); }

TreeNode tree_root(std::int64_t batch) {
  TreeNode root;
  while ((std::int64_t{1} << root.level) < batch) ++root.level;
  return root;
}

void add_gradients(void* sum, const void* term, std::int64_t count, Precision precision) {
  return precision == Precision::fp64 ? add<double>(sum, term, count) : add<float>(sum, term, count);
}

void GradientTree::begin(std::int64_t batch) {
  batch_ = batch;
  while (!nodes_.empty()) free_.push_back(nodes_.extract(nodes_.begin()));
}

void GradientTree::reserve(std::size_t nodes) {
  while (free_.size() + nodes_.size() < nodes) {
    std::map<TreeNode, Buffer> one;
    one[{}] = std::make_unique<std::byte[]>(static_cast<std::size_t>(elements_ * real_bytes(precision_)));
    free_.push_back(one.extract(one.begin()));
  }
}

void GradientTree::add(std::int64_t row, const void* gradients) {
  if (free_.empty()) reserve(nodes_.size() + 1);
  auto entry = std::move(free_.back());
  free_.pop_back();
  std::memcpy(entry.mapped().get(), gradients, static_cast<std::size_t>(elements_ * real_bytes(precision_)));
  TreeNode node{0, row};
  const TreeNode root = tree_root(batch_);
  for (; node.level < root.level; node = node.parent()) {
    if (node.sibling().begin() >= batch_) continue;  // the right half has no rows
    auto other = nodes_.extract(node.sibling());
    if (other.empty()) break;
    if (node.index % 2 != 0) std::swap(entry, other);
    add_gradients(entry.mapped().get(), other.mapped().get(), elements_, precision_);
    free_.push_back(std::move(other));
  }
  entry.key() = node;
  nodes_.insert(std::move(entry));
}

void* GradientTree::find(TreeNode node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? nullptr : found->second.get();
}

std::int64_t GradientTree::bytes() const {
  return static_cast<std::int64_t>(nodes_.size() + free_.size()) * elements_ * real_bytes(precision_);
}

std::size_t most_tree_nodes(std::span<const std::int64_t> rows, std::int64_t batch) {
  const TreeNode root = tree_root(batch);
  std::set<TreeNode> nodes;
  std::size_t most = 0;
  for (const std::int64_t row : rows) {
    most = std::max(most, nodes.size() + 1);
    TreeNode node{0, row};
    for (; node.level < root.level; node = node.parent()) {
      if (node.sibling().begin() >= batch) continue;
      if (nodes.erase(node.sibling()) == 0) break;
    }
    nodes.insert(node);
  }
  return most;
}

}  // namespace millrace::kernels
