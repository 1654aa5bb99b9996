// A tensor of the graph: its name, shape for one sample, role and element type; no data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

using OpId = std::int32_t;      ///< position of an operator in its graph; -1 where there is none
using TensorId = std::int32_t;  ///< position of a tensor in its graph; -1 where there is none

/// What the elements are. Real elements take the precision of the run (2 to 8 bytes), indices are 32-bit integers, and
/// `byte` counts the bytes of a tensor of which only the size is known (`cost` operators).
enum class ElementType : std::uint8_t { real, index, byte };

/// What the tensor is in training.
enum class Role : std::uint8_t {
  input,       ///< read from the data
  label,       ///< read from the data, for the loss only
  activation,  ///< computed by an operator
  parameter,   ///< trained; no batch axis
  buffer       ///< kept but not trained (running statistics); no batch axis
};

/// Dimensions of one sample; the batch axis, where there is one, is the unwritten first.
using Dims = std::vector<std::int64_t>;

/// Product of the dimensions; 1 for a scalar.
std::int64_t element_count(const Dims& dims);

/// "[3, 224, 224]".
std::string format(const Dims& dims);

/// Shape, element type and whether a batch axis comes first.
struct TensorShape {
  Dims dims;
  ElementType element = ElementType::real;
  bool batched = true;

  std::int64_t elements_per_sample() const { return element_count(dims); }
  bool operator==(const TensorShape&) const = default;
};

/// The shape as operators with shape rules read it: an output of which only the bytes are known (kind `cost`) is a flat
/// vector of 4-byte reals. \pre its bytes are a multiple of 4.
TensorShape as_reals(TensorShape shape);

/// How a parameter or buffer starts. Values are functions of (seed, tensor name, index) alone.
struct Initializer {
  enum class Kind : std::uint8_t { zeros, ones, normal, uniform };
  Kind kind = Kind::zeros;
  double scale = 1.0;  ///< standard deviation of normal; half-width of uniform
};

struct Tensor {
  std::string name;  ///< "layer2.3.conv1.weight"; outputs are "OPERATOR.output"
  TensorShape shape;
  Role role = Role::activation;
  OpId producer = -1;         ///< the operator whose output it is; -1 for inputs, labels, parameters, buffers
  Initializer initializer{};  ///< parameters and buffers only
};

}  // namespace millrace
