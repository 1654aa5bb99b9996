// Operators of every kind with shapes that fit: what properties of all kinds are tested on.
#pragma once

#include <string>
#include <vector>

#include "graph/op_schema.h"

namespace millrace::test {

struct Sample {
  std::string kind;
  Attributes attributes;  ///< all that the kind has, defaults included
  std::vector<TensorShape> inputs;
};

/// At least one of every kind; odd and even ranks, strides, single positions, repeated extents.
std::vector<Sample> samples();

/// The operator's inputs, and what its kind infers from them.
OperandShapes operand_shapes(const Sample& sample);

}  // namespace millrace::test
