// Brings gradients of convolution weights from the layout of their pass into rows.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/onednn/dnnl_api.h"

namespace millrace::kernels::onednn {

/// Weights [O, I, h, w] in square blocks of outputs and inputs, those of an output one after the other; within a block
/// place by place (h, w), in which outputs lie beside each other.
struct BlockedWeights {
  std::int64_t block = 0;  ///< outputs, and inputs; both are multiples of it
  std::int64_t outputs = 0, inputs = 0, places = 0;
};

/// OIhw16i16o and OIhw8i8o without padding; nothing where `desc` is another layout.
std::optional<BlockedWeights> blocked_weights(const MemoryDesc& desc);

/// Gradients that are written to row-major ones, or added to them: by loops of our own from such blocks, which oneDNN
/// 2.6 takes up to eight times as long for where rows are a multiple of a page apart; else by oneDNN.
class GradientReorder {
 public:
  GradientReorder(const Engine& engine, int threads, const MemoryDesc& from);

  std::int64_t scratch_bytes() const { return scratch_; }
  void write(const void* from, void* rows, void* scratch);
  void add(const void* from, void* rows, void* scratch);

 private:
  int threads_;
  std::optional<BlockedWeights> blocks_;
  Primitive writing_, adding_;  // none: blocks_
  std::int64_t scratch_ = 0;
};

}  // namespace millrace::kernels::onednn
