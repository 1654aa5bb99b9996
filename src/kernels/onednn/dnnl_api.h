// The thin wrapper over oneDNN: everything that differs between its versions is here and in dnnl_api.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dnnl.hpp>

#if DNNL_VERSION_MAJOR != 2
#error "this wrapper speaks oneDNN's v2 API; add another version beside it"
#endif

namespace millrace::kernels::onednn {

using MemoryDesc = dnnl::memory::desc;
using dnnl::memory;

/// The CPU engine and the stream that all primitives of one executable share.
struct Engine {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

/// The library's version and the vector instructions that it uses here.
std::string library_name();

/// Frees the code of primitives that exist no longer, which the library keeps to make them anew.
void forget_unused_primitives();

/// Row-major fp32, or the layout that a primitive likes best.
MemoryDesc plain_desc(const memory::dims& dims);
MemoryDesc any_desc(const memory::dims& dims);
/// fp32 with these strides, in elements.
MemoryDesc strided_desc(const memory::dims& dims, const memory::dims& strides);
/// [n, C, H, W] with channels in blocks of 8 or 16: nChw8c, nChw16c.
MemoryDesc blocked_desc(const memory::dims& dims, int block);
/// [n, C, H, W] with the channels of a place beside each other: nhwc.
MemoryDesc channels_last_desc(const memory::dims& dims);
/// Channels with those that fill up the last block; `block` 0: plain.
constexpr std::int64_t padded(std::int64_t channels, int block) {
  return block == 0 ? channels : (channels + block - 1) / block * block;
}
/// 8 or 16 where `desc` is such a layout, else 0.
int channel_block(const MemoryDesc& desc);

/// A primitive with its arguments, made once; calls only set addresses.
class Primitive {
 public:
  using Arguments = std::vector<std::pair<int, MemoryDesc>>;

  Primitive() = default;
  Primitive(const Engine& engine, dnnl::primitive primitive, const Arguments& arguments);

  explicit operator bool() const { return !memories_.empty(); }
  /// The address of the argument at `position` of the list it was made with.
  void bind(std::size_t position, const void* data);
  void execute();

 private:
  dnnl::stream stream_;
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

/// to = from, or to += from, in other layouts. Arguments: from, to, scratchpad.
struct Reorder {
  Primitive primitive;
  std::int64_t scratch = 0;
};
Reorder make_reorder(const Engine& engine, const MemoryDesc& from, const MemoryDesc& to, bool accumulate = false);

/// A convolution of [n, C, H, W] images; all sizes as in the graph.
struct ConvolutionShape {
  memory::dims source, weights, destination, strides, padding;
  bool bias = false;
  bool relu = false;  ///< forward ends with max(x, 0)
};

/// One pass of a convolution with the layouts that it was made for.
struct ConvolutionPass {
  dnnl::primitive primitive;
  MemoryDesc source, weights, bias, destination, scratchpad;
  std::string implementation;
};
enum class Pass : std::uint8_t { forward, backward_data, backward_weights };
/// \throws dnnl::error  the layouts are not offered.
ConvolutionPass make_convolution(const Engine& engine, Pass pass, const ConvolutionShape& shape,
                                 const MemoryDesc& source, const MemoryDesc& destination,
                                 dnnl::algorithm algorithm = dnnl::algorithm::convolution_direct);

/// Max or average pooling (the average over the full window), forward and backward.
struct Pooling {
  dnnl::primitive forward, backward;
  MemoryDesc workspace, forward_scratchpad, backward_scratchpad;
};
Pooling make_pooling(const Engine& engine, bool maximum, bool training, const MemoryDesc& source,
                     const MemoryDesc& destination, const memory::dims& kernel, const memory::dims& strides,
                     const memory::dims& padding);

/// C = alpha · op(A) · op(B) + beta · C, row-major with row strides lda, ldb, ldc; C is m × n, the contraction k.
struct Gemm {
  bool transpose_a = false, transpose_b = false;
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  float alpha = 1, beta = 0;
};
void gemm(const Gemm& shape, const float* a, const float* b, float* c);

/// The same by a matmul primitive, for an alpha of 1 and a beta of 0 or 1.
struct MatmulPrimitive {
  Primitive primitive;
  std::int64_t scratch = 0;
};
MatmulPrimitive make_matmul(const Engine& engine, const Gemm& shape);
void bind_matmul(Primitive& primitive, const void* a, const void* b, void* c, void* scratch);

/// The same of operands in bf16, summed in fp32. C is fp32, or `narrow`: bf16, each element rounded once. `bias`: one
/// row in fp32, added to each row of C, is bound behind the others (kBiasPosition). Nothing where the processor has no
/// vector instructions that can do it.
std::optional<MatmulPrimitive> make_bf16_matmul(const Engine& engine, const Gemm& shape, bool narrow, bool bias);
inline constexpr std::size_t kBiasPosition = 4;

}  // namespace millrace::kernels::onednn
