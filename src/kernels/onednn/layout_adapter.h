// Lets a kernel compute in one layout while some of its tensors lie in another.
#pragma once

#include <memory>

#include "kernels/onednn/layouts.h"
#include "kernels/op_kernel.h"

namespace millrace::kernels::onednn {

/// `inner` computes `op` on images in blocks of `block` channels (0: plain); tensors that lie otherwise are reordered
/// to and from scratch. Returns `inner` itself where all agree.
std::unique_ptr<OpKernel> adapt_layouts(std::unique_ptr<OpKernel> inner, const Operator& op, const Layouts& layouts,
                                        int block, const Engine& engine);

}  // namespace millrace::kernels::onednn
