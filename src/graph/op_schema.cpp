// The table of operator kinds.
#include "graph/op_schema.h"

#include "base/errors.h"
#include "base/text.h"
#include "graph/ops/ops.h"

namespace millrace {

const std::vector<const OpSchema*>& op_schemas() {
  static const std::vector<OpSchema> rows{
      ops::linear(),
      ops::conv2d(),
      ops::depthwise_conv2d(),
      ops::conv_transpose2d(),
      ops::batch_norm(),
      ops::layer_norm(),
      ops::relu(),
      ops::tanh(),
      ops::gelu(),
      ops::max_pool(),
      ops::avg_pool(),
      ops::global_average_pool(),
      ops::add(),
      ops::multiply(),
      ops::concat(),
      ops::select(),
      ops::reshape(),
      ops::flatten(),
      ops::transpose(),
      ops::batch_matmul(),
      ops::softmax(),
      ops::attention(),
      ops::additive_attention(),
      ops::lstm(),
      ops::embedding(),
      ops::position_embedding(),
      ops::segment_embedding(),
      ops::dropout(),
      ops::cross_entropy(),
      ops::mean_squared_error(),
      ops::cost(),
  };
  static const std::vector<const OpSchema*> table = [] {
    std::vector<const OpSchema*> pointers;
    for (const OpSchema& row : rows) pointers.push_back(&row);
    return pointers;
  }();
  return table;
}

const OpSchema& op_schema(std::string_view kind) {
  for (const OpSchema* row : op_schemas()) {
    if (row->name == kind) return *row;
  }
  std::vector<std::string> valid;
  for (const OpSchema* row : op_schemas()) valid.push_back(row->name);
  throw InvalidInput(unknown_name("operator kind", kind, valid));
}

}  // namespace millrace
