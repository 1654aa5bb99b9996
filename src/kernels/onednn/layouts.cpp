// Decides tensor by tensor whether blocks of channels cost none of its neighbours a reorder.
#include "kernels/onednn/layouts.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "kernels/onednn/convolution_shape.h"

namespace millrace::kernels::onednn {
namespace {

/// Whether `op` computes on blocks as well as on rows.
bool keeps_blocks(const Graph& graph, const Operator& op, int block) {
  constexpr std::array<std::string_view, 8> kinds{"conv2d", "batch_norm", "relu",     "gelu",
                                                  "add",    "multiply",   "max_pool", "avg_pool"};
  if (op.schema->name != "concat") return std::find(kinds.begin(), kinds.end(), op.schema->name) != kinds.end();
  // Joining channels joins blocks where every part fills its blocks.
  return op.attributes.integer("axis") == 0 && std::all_of(op.inputs.begin(), op.inputs.end(), [&](TensorId part) {
           const Dims& dims = graph.tensor(part).shape.dims;
           return dims.size() == 3 && dims[0] % block == 0;
         });
}

/// The last block of the channels is padded with zeros: worth it up to twice the bytes.
bool fills_blocks(std::int64_t channels, int block) { return padded(channels, block) <= 2 * channels; }

/// The block that the first suitable convolution of the stage asks for its output; 0 without one.
int preferred_block(const StageGraph& stage, std::int64_t rows, const Engine& engine) {
  for (const OpId id : stage.ops) {
    const Operator& op = stage.graph->op(id);
    if (op.schema->name != "conv2d" || !fills_blocks(op.attributes.integer("out_channels"), 16)) continue;
    const ConvolutionShape shape = convolution_shape(*stage.graph, op, rows);
    return channel_block(
        make_convolution(engine, Pass::forward, shape, any_desc(shape.source), any_desc(shape.destination))
            .destination);
  }
  return 0;
}

bool contains(const std::vector<TensorId>& list, TensorId tensor) {
  return std::binary_search(list.begin(), list.end(), tensor);
}

}  // namespace

Layouts::Layouts(const StageGraph& stage, std::int64_t rows, bool plain, const Engine& engine)
    : graph_(stage.graph),
      rows_(rows),
      block_(plain ? 0 : preferred_block(stage, rows, engine)),
      blocked_(stage.graph->tensors().size(), false) {
  if (block_ == 0) return;
  for (const OpId id : stage.ops) {
    const Operator& op = graph_->op(id);
    const TensorId result = op.outputs[0];
    if (!is_image(result) || !fills_blocks(graph_->tensor(result).shape.dims[0], block_)) continue;
    if (!keeps_blocks(*graph_, op, block_) || contains(stage.outputs, result)) continue;
    const auto readers = graph_->consumers(result);
    blocked_[static_cast<std::size_t>(result)] = std::all_of(readers.begin(), readers.end(), [&](OpId reader) {
      const Operator& next = graph_->op(reader);
      return keeps_blocks(*graph_, next, block_) || next.schema->name == "global_average_pool";
    });
  }
}

bool Layouts::is_image(TensorId tensor) const {
  const Tensor& t = graph_->tensor(tensor);
  const bool between = t.role == Role::input || t.role == Role::activation;
  return between && t.shape.element == ElementType::real && t.shape.dims.size() == 3;
}

int Layouts::working_block(const Operator& op) const {
  const auto is_blocked = [&](TensorId tensor) { return blocked_[static_cast<std::size_t>(tensor)]; };
  const bool any = std::any_of(op.inputs.begin(), op.inputs.end(), is_blocked) ||
                   std::any_of(op.outputs.begin(), op.outputs.end(), is_blocked);
  return any ? block_ : 0;
}

std::int64_t Layouts::elements(TensorId tensor) const {
  const TensorShape& shape = graph_->tensor(tensor).shape;
  if (block(tensor) == 0) return rows_ * shape.elements_per_sample();
  return rows_ * padded(shape.dims[0], block_) * shape.dims[1] * shape.dims[2];
}

memory::dims Layouts::dims(TensorId tensor) const {
  memory::dims result{rows_};
  const Dims& sample = graph_->tensor(tensor).shape.dims;
  result.insert(result.end(), sample.begin(), sample.end());
  return result;
}

MemoryDesc Layouts::desc(TensorId tensor, int block) const {
  return block ? blocked_desc(dims(tensor), block) : plain_desc(dims(tensor));
}

}  // namespace millrace::kernels::onednn
