// The kernels of one stage on CPUs by oneDNN and vectorised loops, and the layouts of its tensors.
#pragma once

#include <unordered_set>

#include "kernels/device.h"
#include "kernels/kernel_factory.h"
#include "kernels/onednn/layouts.h"
#include "kernels/onednn/site.h"
#include "kernels/variants.h"

namespace millrace::kernels::onednn {

/// Computes in fp32, and where that is faster multiplies matrices in bf16. Uses as many threads as OpenMP gives when it
/// is made.
class OnednnFactory : public KernelFactory {
 public:
  /// `stage.graph` outlives it and its kernels, and so does the factory its kernels. `variants` may be null; plain
  /// stages use none. `copies`: each call gets copies of its tensors, so nothing can be left in them for the next call.
  OnednnFactory(const StageGraph& stage, const CompileOptions& options, Variants* variants, bool copies);

  std::unique_ptr<OpKernel> make(OpId op) override;
  Bf16Kernel make_bf16(OpId op) override;
  bool absorbed(OpId op) const override { return absorbed_.contains(op); }
  std::size_t joint(OpId op) const override;
  const Operator* fused_loss(OpId op) const override { return op == fused_ ? &graph_.op(graph_.loss()) : nullptr; }
  Saved saved(const StageGraph& stage, OpId op) const override;
  bool rebuilt(OpId op) const override { return rebuilt_.contains(op); }
  std::int64_t tensor_bytes(TensorId tensor) const override;
  void add(TensorId tensor, void* destination, const void* source) const override;

 private:
  Site site(OpId op) const;
  /// Whether the gradient of the first input of `op` is wanted. What a part of a split stage receives is an input of
  /// its graph.
  bool wants_input_gradient(const Operator& op) const;
  /// Whether the maximum behind an absorbed ReLU does its backward.
  bool leaves_gradient(OpId relu) const;

  Engine engine_;
  const Graph& graph_;
  CompileOptions options_;
  std::unordered_set<TensorId> gradient_inputs_;
  Variants* variants_;
  int threads_;
  Layouts layouts_;
  std::unordered_set<OpId> absorbed_;  // ReLUs that convolutions, batch norms and sums do, sums that batch norms do
  std::unordered_set<OpId> of_relu_;   // maxima that do the backward of the ReLU before them
  std::unordered_set<OpId> rebuilt_;   // whose output is made twice
  OpId fused_;                         // the layer that does the loss, too; -1: none
};

}  // namespace millrace::kernels::onednn
