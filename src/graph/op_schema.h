// One operator kind as one row of a table: shapes, cost, letters, and what its backward reads (ARCHITECTURE,
// "Operator kind"). The kernels of a kind live with each device.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/attributes.h"
#include "graph/tensor.h"

namespace millrace {

/// A parameter or buffer that an operator owns: "weight", "running_mean".
struct OwnedTensor {
  std::string suffix;
  Dims dims;
  Initializer initializer{};
};

/// What a kind makes of its inputs.
struct Inference {
  std::vector<TensorShape> outputs{};
  std::vector<OwnedTensor> parameters{};
  std::vector<OwnedTensor> buffers{};
};

/// Shapes of one operator, by operand.
struct OperandShapes {
  std::vector<TensorShape> inputs;
  std::vector<TensorShape> outputs;
  std::vector<Dims> parameters;
};

/// Floating point operations of one sample.
struct OpFlops {
  double forward = 0;
  double backward_input = 0;
  double backward_weight = 0;
};

/// Letters of each dimension, batch axis included ("n" first), one string an operand: dimensions with the same
/// letter are split together; a letter of inputs or parameters that no output has is contracted (METHODS 7).
/// An upper-case letter may not be split. Dimensions with the same letter have the same extent, except the letters in
/// `parts`: their dimensions are multiples of that number and split at multiples of it (the heads of attention; the
/// major factor of a reshape).
struct Letters {
  std::vector<std::string> inputs;
  std::vector<std::string> parameters;
  std::vector<std::string> outputs;
  std::map<char, std::int64_t> parts{};
  /// How the outputs depend on each operand, inputs then parameters, written as a sum: '*' a factor of its one product,
  /// '+' a term alone, '-' not linear. Empty: linear in none. Partial sums pass through linear operands only.
  std::string linear{};
  /// Letters of which a split costs reductions inside the operator (the statistics of a batch; the maximum and the sums
  /// of a row of classes): an output without such a letter is whole all the same.
  std::string reduced{};
  /// Attributes that count along the dimension of a letter: a part of the dimension has as large a part of the
  /// attribute. '*' stands for the dimensions of the output.
  std::vector<std::pair<std::string, char>> counts{};
};

/// What the backward passes of an operator read, besides the gradients of its outputs. Positions in the operand lists.
struct Saved {
  std::vector<int> inputs{};
  std::vector<int> outputs{};
  std::vector<int> parameters{};
  std::int64_t extra_reals_per_sample = 0;            ///< kept from forward (row means, arg-max positions, …)
  std::int64_t extra_reals_per_micro_batch = 0;       ///< kept once for all rows (batch statistics)
  bool input_gradient_needs_only_parameters = false;  ///< backward-input reads no saved activation (linear, conv)
};

/// One operator kind.
struct OpSchema {
  std::string name{};
  std::string text{};
  int minimum_inputs = 1;
  int maximum_inputs = 1;
  /// Attributes with their defaults; one without a default must be given. Other names are refused.
  std::vector<std::pair<std::string, std::optional<Attribute>>> attributes{};
  std::vector<std::string> output_names{"output"};  ///< outputs are tensors "OPERATOR.output", …
  bool explicit_figures = false;                    ///< the kind `cost`: OpFigures say what shapes do not
  bool has_kernels = true;                          ///< false: planned and simulated, not trained
  bool is_loss = false;  ///< outputs: the loss of each sample [n], then the fraction of correct answers [n] (or none)
  /// \throws InvalidInput  naming the operand, what was found and what is allowed.
  Inference (*infer)(const Attributes&, std::span<const TensorShape> inputs) = nullptr;
  OpFlops (*flops)(const Attributes&, const OperandShapes&) = nullptr;
  Letters (*letters)(const Attributes&, const OperandShapes&) = nullptr;
  Saved (*saved)(const Attributes&, const OperandShapes&) = nullptr;
};

/// All kinds, in the order in which they are listed.
const std::vector<const OpSchema*>& op_schemas();

/// \throws InvalidInput  with the nearest valid name.
const OpSchema& op_schema(std::string_view kind);

}  // namespace millrace
