// What a device adds to the common stage executor: its kernels and the layouts of the stage's inner tensors.
#pragma once

#include <cstdint>
#include <memory>

#include "graph/graph.h"
#include "graph/op_schema.h"
#include "graph/stage_graph.h"
#include "kernels/op_kernel.h"

namespace millrace::kernels {

/// A kernel whose real tensors between operators lie in bf16, and the passes that it does. No kernel: none.
struct Bf16Kernel {
  std::unique_ptr<OpKernel> kernel{};
  bool forward = false, backward_input = false, backward_weight = false;
  bool all() const { return forward && backward_input && backward_weight; }
};

/// One per compiled stage and number of rows. Tensors at the stage's border are plain row-major; inner activations
/// and their gradients have the layout that the factory chose for them.
class KernelFactory {
 public:
  virtual ~KernelFactory() = default;

  virtual std::unique_ptr<OpKernel> make(OpId op) = 0;

  /// For training in bf16: the passes of `op` that are faster on tensors in bf16, as they lie, than the kernel by
  /// make() on fp32 copies of them. Parameters and their gradients are fp32 in both.
  virtual Bf16Kernel make_bf16(OpId /*op*/) { return {}; }

  /// Whether the kernel of the operator before `op` does its work too: the output of that one and that of `op` share
  /// their buffers, values and gradients alike, and the kernel of `op` does nothing. The other gets what `op` reads
  /// besides behind its own inputs, where `op` is the next operator of the stage, and in backward what `op` keeps of
  /// its output (`saved`). Asked for before make().
  virtual bool absorbed(OpId /*op*/) const { return false; }

  /// Which input of an absorbed operator the kernel before it makes.
  virtual std::size_t joint(OpId /*op*/) const { return 0; }

  /// The loss that alone reads the output of `op` and whose work the kernel of `op` does too, where what is between
  /// them never exists as a whole: that kernel gets the inputs of both, the outputs of the loss and their gradients,
  /// and makes all gradients in backward_input. Null: there is none. Asked for before make().
  virtual const Operator* fused_loss(OpId /*op*/) const { return nullptr; }

  /// What the backward of `op` reads, besides gradients; of an absorbed operator what the kernel that does its work
  /// reads.
  virtual Saved saved(const StageGraph& stage, OpId op) const {
    const Operator& at = stage.graph->op(op);
    return at.schema->saved(at.attributes, stage.graph->shapes(op));
  }

  /// Whether the output of `op` (and of what it absorbed) is not kept for the operator that alone reads it, but made by
  /// a second forward right before that one's backward. Asked for before make().
  virtual bool rebuilt(OpId /*op*/) const { return false; }

  /// Bytes of activation `tensor` (and of its gradient) for all rows.
  virtual std::int64_t tensor_bytes(TensorId tensor) const = 0;

  /// destination += source, both in the layout of `tensor`: gradients of a tensor with several readers.
  virtual void add(TensorId tensor, void* destination, const void* source) const = 0;
};

}  // namespace millrace::kernels
