// The makers of this device's kernels, one for each operator kind.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/kernel_factory.h"
#include "kernels/onednn/layouts.h"
#include "kernels/onednn/site.h"
#include "kernels/variants.h"

namespace millrace::kernels::onednn {

/// What a kernel does of the ReLU behind its operator.
enum class ReluShare : std::uint8_t {
  none,
  forward,  ///< values; its gradient is the business of the operator behind it
  both      ///< and takes out of its output's gradient what ReLU stops, in place
};

/// What a batch norm does of the operators behind it.
enum class NormTail : std::uint8_t {
  none,
  relu,
  add_relu  ///< its second input is the other term of the sum
};

/// `relu`: with the ReLU that alone reads its output.
std::unique_ptr<OpKernel> make_add(const Site& site, bool relu);
std::unique_ptr<OpKernel> make_attention(const Site& site);
std::unique_ptr<OpKernel> make_batch_matmul(const Site& site);
std::unique_ptr<OpKernel> make_batch_norm(const Site& site, NormTail tail);
std::unique_ptr<OpKernel> make_concat(const Site& site);
/// Reads and writes each tensor in the layout that `layouts` gives it. `variants` may be null.
/// `back`: the gradient of its input is wanted.
std::unique_ptr<OpKernel> make_conv2d(const Site& site, const Layouts& layouts, Variants* variants, bool back,
                                      ReluShare relu);
std::unique_ptr<OpKernel> make_copy(const Site& site);  ///< reshape and flatten
std::unique_ptr<OpKernel> make_cross_entropy(const Site& site);
std::unique_ptr<OpKernel> make_dropout(const Site& site);
std::unique_ptr<OpKernel> make_embedding(const Site& site);
std::unique_ptr<OpKernel> make_gelu(const Site& site);
std::unique_ptr<OpKernel> make_global_average_pool(const Site& site);
std::unique_ptr<OpKernel> make_layer_norm(const Site& site);
std::unique_ptr<OpKernel> make_linear(const Site& site, Variants* variants);  ///< `variants` may be null
/// `back`: the gradient of its input is wanted.
Bf16Kernel make_bf16_linear(const Site& site, Variants* variants, bool back);
std::unique_ptr<OpKernel> make_mean_squared_error(const Site& site);
std::unique_ptr<OpKernel> make_multiply(const Site& site);
std::unique_ptr<OpKernel> make_pool(const Site& site);  ///< maximum and average
/// A maximum that reads what ReLU left: also takes out of its output's gradient, in place, what that ReLU stops.
std::unique_ptr<OpKernel> make_max_pool_of_relu(const Site& site);
std::unique_ptr<OpKernel> make_position_embedding(const Site& site);
std::unique_ptr<OpKernel> make_relu(const Site& site);
std::unique_ptr<OpKernel> make_softmax(const Site& site);
std::unique_ptr<OpKernel> make_transpose(const Site& site);

}  // namespace millrace::kernels::onednn
