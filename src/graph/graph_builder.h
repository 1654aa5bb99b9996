// Builds a Graph operator by operator, inferring shapes and naming tensors as it goes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace millrace {

/// One operator to add. Inputs must exist already, so declaration order is topological.
struct OpSpec {
  std::string name;
  std::string kind;
  std::vector<TensorId> inputs{};
  Attributes attributes{};
  std::string layer{};
  /// Tied weights: existing parameter tensors to use instead of new ones, in the schema's order; -1 makes a new one.
  std::vector<TensorId> shared_parameters{};
  const OpSchema* schema = nullptr;  ///< in place of `kind`: a kind that the table does not list
};

class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name);

  /// Makes room at once, where the numbers are known beforehand.
  void reserve(std::size_t operators, std::size_t tensors);

  TensorId input(std::string name, TensorShape shape);
  TensorId label(std::string name, TensorShape shape);

  /// Adds the operator and its parameters, buffers and outputs; returns its first output.
  /// \throws InvalidInput  unknown kind or attribute, shapes that do not fit, a name used twice: each names the
  /// operator.
  TensorId add(OpSpec spec);

  /// Adds an operator of kind `cost` that has explicit figures; returns its output, `figures.output_bytes` a sample.
  /// \throws InvalidInput  a name used twice, an input that is no data, figures below zero or not finite.
  TensorId add_cost(std::string name, std::vector<TensorId> inputs, const OpFigures& figures, std::string layer = {});
  /// What a file of another planner says beyond the graph. \pre its lists are by operator of the finished graph.
  void carry(Carried carried);

  TensorId find_tensor(std::string_view name) const;
  const TensorShape& shape(TensorId id) const;
  /// Changes how a parameter starts (for example the last linear of a residual branch).
  void initialize(TensorId parameter, Initializer initializer);

  /// The finished graph; the builder is empty afterwards.
  Graph build();

 private:
  TensorId add_tensor(Tensor tensor);
  bool add_operator(Operator op);  ///< false when the name is used already
  TensorId add_data(std::string name, TensorShape shape, Role role);
  const Tensor& operand(TensorId id, std::size_t position) const;  ///< checked: data or an output
  std::vector<TensorShape> check_inputs(const OpSpec& spec, const OpSchema& schema) const;
  void add_parameters(const OpSpec& spec, const std::vector<OwnedTensor>& owned, Operator& op);
  void index_consumers();

  Graph graph_;
};

}  // namespace millrace
