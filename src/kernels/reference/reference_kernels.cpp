// The table of operator kinds and the makers of their reference kernels.
#include "kernels/reference/reference_kernels.h"

#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/errors.h"
#include "kernels/reference/families.h"

namespace millrace::kernels {
namespace {

using namespace reference;

struct Row {
  std::string_view kind;
  std::unique_ptr<OpKernel> (*make)(const Setup&);
};

constexpr Row kRows[] = {
    {"linear", make_linear},
    {"conv2d", make_conv2d},
    {"batch_norm", make_batch_norm},
    {"layer_norm", make_layer_norm},
    {"relu", make_relu},
    {"tanh", make_tanh},
    {"gelu", make_gelu},
    {"max_pool", make_max_pool},
    {"avg_pool", make_average_pool},
    {"global_average_pool", make_global_average_pool},
    {"add", make_add},
    {"multiply", make_multiply},
    {"concat", make_concat},
    {"select", make_select},
    {"reshape", make_copy},
    {"flatten", make_copy},
    {"transpose", make_transpose},
    {"batch_matmul", make_batch_matmul},
    {"softmax", make_softmax},
    {"attention", make_attention},
    {"embedding", make_embedding},
    {"position_embedding", make_position_embedding},
    {"segment_embedding", make_segment_embedding},
    {"dropout", make_dropout},
    {"cross_entropy", make_cross_entropy},
    {"mean_squared_error", make_mean_squared_error},
};

}  // namespace

std::unique_ptr<OpKernel> make_reference_kernel(const Graph& graph, OpId op, std::int64_t rows, Precision precision,
                                                bool training, std::uint64_t seed) {
  const Operator& described = graph.op(op);
  for (const Row& row : kRows) {
    if (row.kind == described.schema->name) {
      return row.make(Setup{graph, described, rows, precision, training, seed});
    }
  }
  throw InvalidInput(fmt::format("operator '{}': the reference device has no kernels for kind '{}'", described.name,
                                 described.schema->name));
}

}  // namespace millrace::kernels
