// Which algorithm each pass of a convolution uses: direct, or Winograd's or one on other layouts where that is faster.
#pragma once

#include <string>

#include "kernels/onednn/dnnl_api.h"
#include "kernels/variants.h"

namespace millrace::kernels::onednn {

/// The name of a pass on `shape` in a table of variants. The choice for some rows holds for all numbers of rows that
/// have the same name: it is measured on the largest power of two up to them, or up to what is enough work to be
/// measured.
std::string convolution_work(Pass pass, const ConvolutionShape& shape);

/// `direct` or another algorithm, as `variants` knows it; work that is large enough is measured. The other one may want
/// its tensors with channels last: where they do not fill their blocks that is faster, reorders counted.
ConvolutionPass choose_convolution(const Engine& engine, Pass pass, const ConvolutionShape& shape,
                                   ConvolutionPass direct, Variants* variants);

/// Processor time of the pass alone, by the fastest algorithm, on tensors that lie as it likes them.
double least_convolution_seconds(const Engine& engine, Pass pass, const ConvolutionShape& shape);

}  // namespace millrace::kernels::onednn
