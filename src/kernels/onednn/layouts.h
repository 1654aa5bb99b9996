// Which inner images of a stage are kept with channels in blocks, as oneDNN's convolutions like them.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/stage_graph.h"
#include "kernels/onednn/dnnl_api.h"

namespace millrace::kernels::onednn {

/// An image [C, H, W] inside the stage is blocked where a convolution of the stage prefers it, its channels nearly fill
/// blocks (the rest of the last one is kept zero), and its producer and all its readers compute on blocks as they are.
/// Everything else is plain row-major.
class Layouts {
 public:
  /// \param plain  everything is row-major.
  Layouts(const StageGraph& stage, std::int64_t rows, bool plain, const Engine& engine);

  /// Channels of a block of `tensor`; 0: plain.
  int block(TensorId tensor) const { return blocked_[static_cast<std::size_t>(tensor)] ? block_ : 0; }
  /// Channels of a block of the images that `op` computes on; where a tensor of it is plain it is reordered.
  int working_block(const Operator& op) const;

  /// Whether `tensor` is an image that does not lie in blocks of `block` channels.
  bool differs(TensorId tensor, int block) const { return is_image(tensor) && this->block(tensor) != block; }

  /// Elements of all rows, with the zeros that fill up blocks.
  std::int64_t elements(TensorId tensor) const;
  /// [rows, dims…] of an activation.
  memory::dims dims(TensorId tensor) const;
  MemoryDesc desc(TensorId tensor) const { return desc(tensor, block(tensor)); }
  MemoryDesc desc(TensorId tensor, int block) const;

 private:
  bool is_image(TensorId tensor) const;

  const Graph* graph_;
  std::int64_t rows_;
  int block_ = 0;
  std::vector<bool> blocked_;  // by tensor
};

}  // namespace millrace::kernels::onednn
