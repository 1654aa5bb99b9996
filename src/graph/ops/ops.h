// The rows of the operator table, one function a kind, one source file a family.
#pragma once

#include "graph/op_schema.h"

namespace millrace::ops {

OpSchema linear();
OpSchema conv2d();
OpSchema depthwise_conv2d();
OpSchema conv_transpose2d();
OpSchema batch_norm();
OpSchema layer_norm();
OpSchema relu();
OpSchema tanh();
OpSchema gelu();
OpSchema max_pool();
OpSchema avg_pool();
OpSchema global_average_pool();
OpSchema add();
OpSchema multiply();
OpSchema concat();
OpSchema select();
OpSchema reshape();
OpSchema flatten();
OpSchema transpose();
OpSchema batch_matmul();
OpSchema softmax();
OpSchema attention();
OpSchema additive_attention();
OpSchema lstm();
OpSchema embedding();
OpSchema position_embedding();
OpSchema segment_embedding();
OpSchema dropout();
OpSchema cross_entropy();
OpSchema mean_squared_error();
OpSchema cost();

}  // namespace millrace::ops
