// The table from operator kinds to makers, and the bytes of tensors in their layouts.
#include "kernels/onednn/onednn_factory.h"

#include <algorithm>
#include <string_view>

#include <omp.h>

#include "kernels/onednn/layout_adapter.h"
#include "kernels/onednn/makers.h"
#include "kernels/onednn/parallel.h"
#include "kernels/onednn/row_loops.h"
#include "kernels/reference/reference_kernels.h"

namespace millrace::kernels::onednn {
namespace {

struct Kind {
  std::string_view name;
  std::unique_ptr<OpKernel> (*make)(const Site&);
};

constexpr Kind kKinds[] = {
    {"add", make_add},
    {"attention", make_attention},
    {"avg_pool", make_pool},
    {"batch_matmul", make_batch_matmul},
    {"concat", make_concat},
    {"cross_entropy", make_cross_entropy},
    {"dropout", make_dropout},
    {"embedding", make_embedding},
    {"flatten", make_copy},
    {"gelu", make_gelu},
    {"global_average_pool", make_global_average_pool},
    {"layer_norm", make_layer_norm},
    {"linear", make_linear},
    {"max_pool", make_pool},
    {"mean_squared_error", make_mean_squared_error},
    {"multiply", make_multiply},
    {"position_embedding", make_position_embedding},
    {"relu", make_relu},
    {"reshape", make_copy},
    {"softmax", make_softmax},
    {"transpose", make_transpose},
};

/// An operator whose work another kernel does.
class AbsorbedKernel : public OpKernel {
 public:
  void forward(const OpCall&) override {}
  void backward_input(const OpCall&) override {}
};

/// Each ReLU that alone reads the output of a batch norm of the stage, in the layout in which it is written. What runs
/// again and what does not would lie in one buffer, so none where something is recomputed.
std::unordered_set<OpId> relus_of_batch_norms(const StageGraph& stage, const Layouts& layouts,
                                              const CompileOptions& options) {
  std::unordered_set<OpId> found;
  if (!options.recompute.empty()) return found;
  const Graph& graph = *stage.graph;
  for (const OpId id : stage.ops) {
    const Operator& op = graph.op(id);
    if (op.schema->name != "relu") continue;
    const TensorId between = op.inputs[0];
    const OpId before = graph.tensor(between).producer;
    const bool inside = before >= 0 && std::binary_search(stage.ops.begin(), stage.ops.end(), before);
    if (!inside || graph.op(before).schema->name != "batch_norm" || graph.consumers(between).size() != 1) continue;
    if (layouts.block(between) == layouts.block(op.outputs[0])) found.insert(id);
  }
  return found;
}

}  // namespace

OnednnFactory::OnednnFactory(const StageGraph& stage, const CompileOptions& options)
    : graph_(*stage.graph),
      options_(options),
      threads_(omp_get_max_threads()),
      layouts_(stage, options.rows, options.plain, engine_),
      absorbed_(relus_of_batch_norms(stage, layouts_, options)) {}

std::unique_ptr<OpKernel> OnednnFactory::make(OpId id) {
  const Operator& op = graph_.op(id);
  const Site site{graph_,        op,       options_.rows, options_.training,
                  options_.seed, threads_, engine_,       layouts_.working_block(op)};
  if (op.schema->name == "conv2d") {
    return make_conv2d(site, layouts_);
  }
  if (absorbed(id)) return std::make_unique<AbsorbedKernel>();
  if (op.schema->name == "batch_norm") {
    const auto readers = graph_.consumers(op.outputs[0]);
    const bool relu = std::any_of(readers.begin(), readers.end(), [&](OpId reader) { return absorbed(reader); });
    return adapt_layouts(make_batch_norm(site, relu), op, layouts_, site.block, engine_);
  }
  for (const Kind& kind : kKinds) {
    if (kind.name != op.schema->name) continue;
    return adapt_layouts(kind.make(site), op, layouts_, site.block, engine_);
  }
  return make_reference_kernel(graph_, id, options_.rows, Precision::fp32, options_.training, options_.seed);
}

std::int64_t OnednnFactory::tensor_bytes(TensorId tensor) const {
  return layouts_.elements(tensor) * kFloatBytes;  // indices take four bytes too
}

void OnednnFactory::add(TensorId tensor, void* destination, const void* source) const {
  float* to = static_cast<float*>(destination);
  const float* from = static_cast<const float*>(source);
  parallel_elements(threads_, tensor_bytes(tensor) / kFloatBytes,
                    [=](std::int64_t begin, std::int64_t end) { row_add(to + begin, from + begin, end - begin); });
}

}  // namespace millrace::kernels::onednn
