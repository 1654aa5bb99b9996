// Linear layers as operator cases, and the names of their products.
#pragma once

#include "kernels/onednn/matrix_product.h"
#include "tests/kernels/op_cases.h"

namespace millrace::kernels::testing {

inline constexpr onednn::Pass kLinearPasses[] = {onednn::Pass::forward, onednn::Pass::backward_data,
                                                 onednn::Pass::backward_weights};

inline OpCase linear_case(std::int64_t rows, std::int64_t inputs, std::int64_t outputs, bool bias) {
  return {"linear", "linear", {{"out_features", outputs}, {"bias", bias}}, {{{inputs}}}, rows, rows};
}

inline onednn::LinearShape shape_of_linear(const OpCase& op_case) {
  const OpCaseStage made = make_op_case_stage(op_case);
  const Operator& op = made.graph.op(made.op);
  return {op_case.rows, made.graph.tensor(op.inputs[0]).shape.dims.back(),
          made.graph.tensor(op.outputs[0]).shape.dims.back(), op.attributes.boolean("bias")};
}

}  // namespace millrace::kernels::testing
