// The graph: what is computed. Operators in canonical (topological) order, tensors, and who reads what.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/carried.h"
#include "graph/figures.h"
#include "graph/name_index.h"
#include "graph/op_schema.h"
#include "graph/tensor.h"

namespace millrace {

struct Operator {
  std::string name;
  const OpSchema* schema = nullptr;
  Attributes attributes{};
  std::vector<TensorId> inputs{};
  std::vector<TensorId> parameters{};  ///< tied weights: several operators name one tensor
  std::vector<TensorId> buffers{};
  std::vector<TensorId> outputs{};
  std::string layer{};  ///< the layer that `layer_equal` counts by; empty: the operator is its own
};

/// An immutable directed acyclic graph of operators. Position = canonical order: every operator comes after those
/// whose outputs it reads. Made by GraphBuilder.
class Graph {
 public:
  const std::string& name() const { return name_; }

  std::int64_t size() const { return static_cast<std::int64_t>(operators_.size()); }
  const std::vector<Operator>& operators() const { return operators_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const Operator& op(OpId id) const { return operators_[static_cast<std::size_t>(id)]; }
  const Tensor& tensor(TensorId id) const { return tensors_[static_cast<std::size_t>(id)]; }

  /// Operators that read tensor `id`, or that own it as parameter or buffer; ascending, one entry an operator.
  std::span<const OpId> consumers(TensorId id) const;

  /// The operator or tensor of that name; -1 when there is none.
  OpId find_op(std::string_view name) const;
  TensorId find_tensor(std::string_view name) const;

  std::span<const TensorId> inputs() const { return inputs_; }          ///< tensors of role input
  std::span<const TensorId> labels() const { return labels_; }          ///< tensors of role label
  std::span<const TensorId> parameters() const { return parameters_; }  ///< each tied tensor once, in first-use order
  std::span<const TensorId> buffers() const { return buffers_; }

  /// Trained numbers; a tied tensor counts once.
  std::int64_t parameter_count() const;

  /// The loss operator; -1 for graphs without one.
  OpId loss() const { return loss_; }

  /// The figures of a `cost` operator; null for the other kinds.
  const OpFigures* figures(OpId id) const {
    return op(id).schema->explicit_figures ? &figures_[static_cast<std::size_t>(id)] : nullptr;
  }
  /// Whether every operator is of a kind that has kernels.
  bool trainable() const;
  /// What the file of another planner says beyond that; null where there is none.
  const Carried* carried() const { return carried_.get(); }

  /// Identity of structure, shapes, attributes and names: a plan for another digest is refused.
  const std::string& digest() const { return digest_; }

  /// Shapes of the operands of `id`, for the functions of its schema.
  OperandShapes shapes(OpId id) const;

 private:
  friend class GraphBuilder;
  std::string make_digest() const;

  std::string name_;
  std::vector<Operator> operators_;
  std::vector<Tensor> tensors_;
  std::vector<std::int64_t> consumer_start_;  // CSR: consumers of tensor t are consumers_[start[t] .. start[t+1])
  std::vector<OpId> consumers_;
  std::vector<TensorId> inputs_, labels_, parameters_, buffers_;
  NameIndex op_names_, tensor_names_;
  OpId loss_ = -1;
  std::vector<OpFigures> figures_;  // by operator; empty without cost operators
  std::shared_ptr<const Carried> carried_;
  std::string digest_;  // plans carry it: read often, made once
};

}  // namespace millrace
