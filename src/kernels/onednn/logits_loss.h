// A linear layer and the cross-entropy of its logits, with logits of a few positions at a time in scratch.
#pragma once

#include <memory>

#include "kernels/device.h"
#include "kernels/onednn/site.h"

namespace millrace::kernels::onednn {

/// The linear layer of `stage` that is to be fused with the loss; -1: none. The loss alone reads its logits, all of
/// them take more than a chunk, and no backward keeps them: in evaluation, or where the layer runs again. None in a
/// stage whose kernels others make or whose backward is split.
OpId layer_of_fused_loss(const StageGraph& stage, const CompileOptions& options);

/// The kernel of KernelFactory::fused_loss. `site`: of the layer. Bits of losses do not depend on the chunks.
std::unique_ptr<OpKernel> make_logits_loss(const Site& site, const Operator& loss);

}  // namespace millrace::kernels::onednn
