// The table from operator kinds to makers, and the bytes of tensors in their layouts.
#include "kernels/onednn/onednn_factory.h"

#include <algorithm>
#include <string_view>

#include <omp.h>

#include "kernels/onednn/layout_adapter.h"
#include "kernels/onednn/logits_loss.h"
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

bool runs_again(const CompileOptions& options, OpId op) {
  return std::binary_search(options.recompute.begin(), options.recompute.end(), op);
}

bool is_relu_host(const Operator& op) {
  return op.schema->name == "batch_norm" || op.schema->name == "add" || op.schema->name == "conv2d";
}

/// The operator of the stage that alone reads the first output of `op`; -1: none.
OpId only_reader(const StageGraph& stage, OpId op) {
  const TensorId output = stage.graph->op(op).outputs[0];
  const auto readers = stage.graph->consumers(output);
  const bool alone = readers.size() == 1 && !std::binary_search(stage.outputs.begin(), stage.outputs.end(), output);
  return alone ? readers.front() : OpId{-1};
}

/// Each ReLU that alone reads the output of a host of the stage, in the layout in which it is written.
/// What runs again keeps its outputs apart from what does not.
std::unordered_set<OpId> absorbed_relus(const StageGraph& stage, const Layouts& layouts, const CompileOptions& options,
                                        bool copies) {
  std::unordered_set<OpId> found;
  const Graph& graph = *stage.graph;
  for (const OpId id : stage.ops) {
    const Operator& op = graph.op(id);
    if (op.schema->name != "relu") continue;
    const TensorId between = op.inputs[0];
    const OpId before = graph.tensor(between).producer;
    const bool inside = before >= 0 && std::binary_search(stage.ops.begin(), stage.ops.end(), before);
    if (!inside || !is_relu_host(graph.op(before)) || graph.consumers(between).size() != 1) continue;
    // The halves of a convolution's backward hand each other the gradient that ReLU let through; and oneDNN may take
    // another implementation with a ReLU, where bits may not depend on the cut.
    if ((copies || options.plain) && graph.op(before).schema->name == "conv2d") continue;
    if (runs_again(options, id) || runs_again(options, before)) continue;
    if (layouts.block(between) == layouts.block(op.outputs[0])) found.insert(id);
  }
  return found;
}

/// The batch norm right before `sum` in the stage that makes one of its terms for it alone; -1: none. All images lie in
/// one layout.
OpId norm_before(const StageGraph& stage, const Layouts& layouts, const Operator& sum) {
  const Graph& graph = *stage.graph;
  const auto at = std::lower_bound(stage.ops.begin(), stage.ops.end(), graph.tensor(sum.outputs[0]).producer);
  if (at == stage.ops.begin()) return -1;
  const OpId before = *(at - 1);
  const Operator& norm = graph.op(before);
  if (norm.schema->name != "batch_norm" || only_reader(stage, before) != *at) return -1;
  if (sum.inputs[0] == sum.inputs[1]) return -1;
  const int block = layouts.block(sum.outputs[0]);
  const auto lies_so = [&](TensorId tensor) { return layouts.block(tensor) == block; };
  const bool alike = lies_so(norm.inputs[0]) && std::all_of(sum.inputs.begin(), sum.inputs.end(), lies_so);
  return alike ? before : OpId{-1};
}

/// Each sum with an absorbed ReLU behind it whose one term a batch norm makes. Its gradients then come when those of
/// the batch norm do: too late for what other kernels begin early.
std::unordered_set<OpId> with_sums(const StageGraph& stage, const Layouts& layouts, const CompileOptions& options,
                                   bool copies, std::unordered_set<OpId> relus) {
  std::unordered_set<OpId> found = relus;
  if (copies || options.plain || options.source != nullptr) return found;
  for (const OpId relu : relus) {
    const OpId sum = stage.graph->tensor(stage.graph->op(relu).inputs[0]).producer;
    if (stage.graph->op(sum).schema->name != "add") continue;
    const OpId norm = norm_before(stage, layouts, stage.graph->op(sum));
    if (norm >= 0 && !runs_again(options, norm)) found.insert(sum);
  }
  return found;
}

/// Maxima of what convolutions and their ReLUs leave. The largest of a window tells whether ReLU stopped all of it, so
/// no one needs to keep the image before.
std::unordered_set<OpId> maxima_of_relus(const StageGraph& stage, const std::unordered_set<OpId>& absorbed,
                                         const CompileOptions& options) {
  std::unordered_set<OpId> found;
  for (const OpId relu : absorbed) {
    const OpId host = stage.graph->tensor(stage.graph->op(relu).inputs[0]).producer;
    const OpId reader = only_reader(stage, relu);
    if (reader < 0 || runs_again(options, reader) || stage.graph->op(host).schema->name != "conv2d") continue;
    if (stage.graph->op(reader).schema->name == "max_pool") found.insert(reader);
  }
  return found;
}

/// Whether the output of `op`, with the ReLU that it does, costs little to make again from what its backward keeps.
bool is_cheap_to_make(const Operator& op, bool with_relu) {
  return op.schema->name == "gelu" || op.schema->name == "layer_norm" || (op.schema->name == "batch_norm" && with_relu);
}

/// Operators whose output one convolution or linear layer of the stage reads and no one else: making it again costs a
/// hundredth of what the reader takes, and its memory is free between the two uses.
std::unordered_set<OpId> rebuilt_operators(const StageGraph& stage, const std::unordered_set<OpId>& absorbed,
                                           const CompileOptions& options) {
  std::unordered_set<OpId> found;
  if (!options.training || options.split_backward) return found;
  const Graph& graph = *stage.graph;
  for (const OpId id : stage.ops) {
    OpId reader = only_reader(stage, id);
    const bool with_relu = reader >= 0 && absorbed.contains(reader) && graph.op(reader).schema->name == "relu";
    if (with_relu) reader = only_reader(stage, reader);
    if (reader < 0 || !is_cheap_to_make(graph.op(id), with_relu)) continue;
    if (runs_again(options, id) || runs_again(options, reader)) continue;
    const std::string_view kind = graph.op(reader).schema->name;
    if (kind == "conv2d" || kind == "linear") found.insert(id);
  }
  return found;
}

}  // namespace

OnednnFactory::OnednnFactory(const StageGraph& stage, const CompileOptions& options, Variants* variants, bool copies)
    : graph_(*stage.graph),
      options_(options),
      gradient_inputs_(stage.gradient_inputs.begin(), stage.gradient_inputs.end()),
      variants_(options.plain ? nullptr : variants),
      threads_(omp_get_max_threads()),
      layouts_(stage, options.rows, options.plain, engine_),
      absorbed_(with_sums(stage, layouts_, options, copies, absorbed_relus(stage, layouts_, options, copies))),
      of_relu_(maxima_of_relus(stage, absorbed_, options)),
      rebuilt_(rebuilt_operators(stage, absorbed_, options)),
      fused_(copies ? OpId{-1} : layer_of_fused_loss(stage, options)) {}

Site OnednnFactory::site(OpId id) const {
  const Operator& op = graph_.op(id);
  return {graph_, op, options_.rows, options_.training, options_.seed, threads_, engine_, layouts_.working_block(op)};
}

bool OnednnFactory::wants_input_gradient(const Operator& op) const {
  const TensorId input = op.inputs[0];
  return graph_.tensor(input).role == Role::activation || gradient_inputs_.contains(input);
}

Bf16Kernel OnednnFactory::make_bf16(OpId id) {
  const Operator& op = graph_.op(id);
  if (op.schema->name != "linear") return {};
  return make_bf16_linear(site(id), variants_, wants_input_gradient(op));
}

std::unique_ptr<OpKernel> OnednnFactory::make(OpId id) {
  const Operator& op = graph_.op(id);
  const Site site = this->site(id);
  if (id == fused_) return make_logits_loss(site, graph_.op(graph_.loss()));
  if (absorbed(id) || (fused_ >= 0 && id == graph_.loss())) return std::make_unique<AbsorbedKernel>();
  if (is_relu_host(op)) {
    const auto readers = graph_.consumers(op.outputs[0]);
    const bool relu = std::any_of(readers.begin(), readers.end(), [&](OpId reader) {
      return absorbed(reader) && graph_.op(reader).inputs[joint(reader)] == op.outputs[0];
    });
    if (op.schema->name == "conv2d") {
      const bool forward = relu && leaves_gradient(readers.front());
      return make_conv2d(site, layouts_, variants_, wants_input_gradient(op),
                         forward ? ReluShare::forward
                         : relu  ? ReluShare::both
                                 : ReluShare::none);
    }
    const bool sum = relu && graph_.op(readers.front()).schema->name == "add";
    const NormTail tail = sum ? NormTail::add_relu : relu ? NormTail::relu : NormTail::none;
    auto kernel = op.schema->name == "add" ? make_add(site, relu) : make_batch_norm(site, tail);
    return adapt_layouts(std::move(kernel), op, layouts_, site.block, engine_);
  }
  if (op.schema->name == "linear") {
    return adapt_layouts(make_linear(site, variants_), op, layouts_, site.block, engine_);
  }
  if (of_relu_.contains(id)) return adapt_layouts(make_max_pool_of_relu(site), op, layouts_, site.block, engine_);
  for (const Kind& kind : kKinds) {
    if (kind.name != op.schema->name) continue;
    return adapt_layouts(kind.make(site), op, layouts_, site.block, engine_);
  }
  return make_reference_kernel(graph_, id, options_.rows, Precision::fp32, options_.training, options_.seed);
}

bool OnednnFactory::leaves_gradient(OpId relu) const {
  const auto readers = graph_.consumers(graph_.op(relu).outputs[0]);
  return std::any_of(readers.begin(), readers.end(), [&](OpId reader) { return of_relu_.contains(reader); });
}

std::size_t OnednnFactory::joint(OpId id) const {
  const Operator& op = graph_.op(id);
  if (op.inputs.size() < 2) return 0;
  // Of a sum: what the batch norm right before it makes.
  return graph_.tensor(op.inputs[0]).producer > graph_.tensor(op.inputs[1]).producer ? 0 : 1;
}

// A batch norm tells what ReLU alone stops from its input.
Saved OnednnFactory::saved(const StageGraph& stage, OpId op) const {
  Saved saved = KernelFactory::saved(stage, op);
  if (absorbed(op)) {
    const Operator& host = graph_.op(graph_.tensor(graph_.op(op).inputs[0]).producer);
    if (host.schema->name == "batch_norm" || leaves_gradient(op)) saved.outputs.clear();
  }
  if (of_relu_.contains(op)) saved.outputs = {0};
  return saved;
}

std::int64_t OnednnFactory::tensor_bytes(TensorId tensor) const {
  if (fused_ >= 0 && tensor == graph_.op(fused_).outputs[0]) return 0;
  return layouts_.elements(tensor) * kFloatBytes;  // indices take four bytes too
}

void OnednnFactory::add(TensorId tensor, void* destination, const void* source) const {
  float* to = static_cast<float*>(destination);
  const float* from = static_cast<const float*>(source);
  parallel_elements(threads_, tensor_bytes(tensor) / kFloatBytes,
                    [=](std::int64_t begin, std::int64_t end) { row_add(to + begin, from + begin, end - begin); });
}

}  // namespace millrace::kernels::onednn
