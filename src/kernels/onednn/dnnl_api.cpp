// The calls of oneDNN's v2 API that the device makes.
#include "kernels/onednn/dnnl_api.h"

#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

namespace millrace::kernels::onednn {
namespace {

constexpr auto kFloat = memory::data_type::f32;
constexpr auto kBf16 = memory::data_type::bf16;

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

/// With the result added to what is there.
dnnl::primitive_attr adding_attributes() {
  dnnl::primitive_attr attributes = user_scratchpad();
  dnnl::post_ops operations;
  operations.append_sum(1.0F);
  attributes.set_post_ops(operations);
  return attributes;
}

MemoryDesc bias_desc(const ConvolutionShape& shape) {
  return shape.bias ? plain_desc({shape.weights[0]}) : MemoryDesc();
}

dnnl::primitive_attr convolution_attributes(const ConvolutionShape& shape) {
  dnnl::primitive_attr attributes = user_scratchpad();
  if (shape.relu) {
    dnnl::post_ops operations;
    operations.append_eltwise(1.0F, dnnl::algorithm::eltwise_relu, 0.0F, 0.0F);
    attributes.set_post_ops(operations);
  }
  return attributes;
}

dnnl::convolution_forward::primitive_desc forward_desc(const Engine& engine, const ConvolutionShape& shape,
                                                       const MemoryDesc& source, const MemoryDesc& destination,
                                                       dnnl::algorithm algorithm) {
  return {{dnnl::prop_kind::forward_training, algorithm, source, any_desc(shape.weights), bias_desc(shape), destination,
           shape.strides, shape.padding, shape.padding},
          convolution_attributes(shape),
          engine.engine};
}

struct MatmulOperands {
  MemoryDesc a, b, c, bias;  // bias: empty where there is none
};

MatmulOperands matmul_operands(const Gemm& shape, memory::data_type factors, memory::data_type result,
                               const MemoryDesc& bias) {
  const auto desc = [](std::int64_t rows, std::int64_t columns, bool transposed, std::int64_t stride,
                       memory::data_type type) {
    return MemoryDesc({rows, columns}, type, transposed ? memory::dims{1, stride} : memory::dims{stride, 1});
  };
  return {desc(shape.m, shape.k, shape.transpose_a, shape.lda, factors),
          desc(shape.k, shape.n, shape.transpose_b, shape.ldb, factors),
          desc(shape.m, shape.n, false, shape.ldc, result), bias};
}

dnnl::matmul::primitive_desc matmul_primitive(const Engine& engine, const Gemm& shape, const MatmulOperands& operands) {
  const auto& [a, b, c, bias] = operands;
  const bool with_bias = bias != MemoryDesc();
  return {with_bias ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c),
          shape.beta != 0 ? adding_attributes() : user_scratchpad(), engine.engine};
}

MatmulPrimitive make_matmul_of(const Engine& engine, const MatmulOperands& operands,
                               const dnnl::matmul::primitive_desc& made) {
  Primitive::Arguments arguments{{DNNL_ARG_SRC, operands.a},
                                 {DNNL_ARG_WEIGHTS, operands.b},
                                 {DNNL_ARG_DST, operands.c},
                                 {DNNL_ARG_SCRATCHPAD, made.scratchpad_desc()}};
  if (operands.bias != MemoryDesc()) arguments.emplace_back(DNNL_ARG_BIAS, operands.bias);
  return {Primitive(engine, dnnl::matmul(made), arguments),
          static_cast<std::int64_t>(made.scratchpad_desc().get_size())};
}

}  // namespace

std::string library_name() {
  const dnnl_version_t& version = *dnnl::version();
  return fmt::format("oneDNN {}.{}.{}, instructions {}", version.major, version.minor, version.patch,
                     static_cast<int>(dnnl::get_effective_cpu_isa()));
}

void forget_unused_primitives() {
  const int capacity = dnnl::get_primitive_cache_capacity();
  dnnl::set_primitive_cache_capacity(0);
  dnnl::set_primitive_cache_capacity(capacity);
}

MemoryDesc plain_desc(const memory::dims& dims) {
  memory::dims strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return {dims, kFloat, strides};
}

MemoryDesc any_desc(const memory::dims& dims) { return {dims, kFloat, memory::format_tag::any}; }

MemoryDesc strided_desc(const memory::dims& dims, const memory::dims& strides) { return {dims, kFloat, strides}; }

MemoryDesc blocked_desc(const memory::dims& dims, int block) {
  return {dims, kFloat, block == 8 ? memory::format_tag::nChw8c : memory::format_tag::nChw16c};
}

MemoryDesc channels_last_desc(const memory::dims& dims) { return {dims, kFloat, memory::format_tag::nhwc}; }

int channel_block(const MemoryDesc& desc) {
  for (const int block : {8, 16}) {
    if (desc == blocked_desc(desc.dims(), block)) return block;
  }
  return 0;
}

Primitive::Primitive(const Engine& engine, dnnl::primitive primitive, const Arguments& arguments)
    : stream_(engine.stream), primitive_(std::move(primitive)) {
  for (const auto& [index, desc] : arguments) {
    memories_.push_back(dnnl::memory(desc, engine.engine, DNNL_MEMORY_NONE));
    arguments_.push_back({index, memories_.back().get()});
  }
}

void Primitive::bind(std::size_t position, const void* data) {
  memories_[position].set_data_handle(const_cast<void*>(data));
}

void Primitive::execute() {
  // The C call takes the prepared list as it is; the C++ one would build another.
  const dnnl_status_t status =
      dnnl_primitive_execute(primitive_.get(), stream_.get(), static_cast<int>(arguments_.size()), arguments_.data());
  if (status != dnnl_success) throw std::runtime_error("oneDNN could not execute a primitive");
}

Reorder make_reorder(const Engine& engine, const MemoryDesc& from, const MemoryDesc& to, bool accumulate) {
  const dnnl::primitive_attr attributes = accumulate ? adding_attributes() : user_scratchpad();
  const dnnl::reorder::primitive_desc desc(engine.engine, from, engine.engine, to, attributes);
  return {Primitive(engine, dnnl::reorder(desc),
                    {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}, {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}}),
          static_cast<std::int64_t>(desc.scratchpad_desc().get_size())};
}

ConvolutionPass make_convolution(const Engine& engine, Pass pass, const ConvolutionShape& shape,
                                 const MemoryDesc& source, const MemoryDesc& destination, dnnl::algorithm algorithm) {
  if (pass == Pass::forward) {
    const auto desc = forward_desc(engine, shape, source, destination, algorithm);
    return {
        dnnl::convolution_forward(desc), desc.src_desc(),     desc.weights_desc(), desc.bias_desc(), desc.dst_desc(),
        desc.scratchpad_desc(),          desc.impl_info_str()};
  }
  // The hint only has to exist: backward passes choose their own implementation.
  const auto hint = forward_desc(engine, shape, any_desc(shape.source), any_desc(shape.destination),
                                 dnnl::algorithm::convolution_direct);
  if (pass == Pass::backward_data) {
    const dnnl::convolution_backward_data::primitive_desc desc(
        {algorithm, source, any_desc(shape.weights), destination, shape.strides, shape.padding, shape.padding},
        user_scratchpad(), engine.engine, hint);
    return {dnnl::convolution_backward_data(desc),
            desc.diff_src_desc(),
            desc.weights_desc(),
            MemoryDesc(),
            desc.diff_dst_desc(),
            desc.scratchpad_desc(),
            desc.impl_info_str()};
  }
  const dnnl::convolution_backward_weights::primitive_desc desc(
      {algorithm, source, any_desc(shape.weights), bias_desc(shape), destination, shape.strides, shape.padding,
       shape.padding},
      user_scratchpad(), engine.engine, hint);
  return {dnnl::convolution_backward_weights(desc),
          desc.src_desc(),
          desc.diff_weights_desc(),
          desc.diff_bias_desc(),
          desc.diff_dst_desc(),
          desc.scratchpad_desc(),
          desc.impl_info_str()};
}

Pooling make_pooling(const Engine& engine, bool maximum, bool training, const MemoryDesc& source,
                     const MemoryDesc& destination, const memory::dims& kernel, const memory::dims& strides,
                     const memory::dims& padding) {
  const auto algorithm = maximum ? dnnl::algorithm::pooling_max : dnnl::algorithm::pooling_avg_include_padding;
  const auto kind = training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  const dnnl::pooling_forward::primitive_desc forward(
      {kind, algorithm, source, destination, strides, kernel, padding, padding}, user_scratchpad(), engine.engine);
  Pooling result{dnnl::pooling_forward(forward), {}, forward.workspace_desc(), forward.scratchpad_desc(), {}};
  if (training) {
    const dnnl::pooling_backward::primitive_desc backward(
        {algorithm, source, destination, strides, kernel, padding, padding}, user_scratchpad(), engine.engine, forward);
    result.backward = dnnl::pooling_backward(backward);
    result.backward_scratchpad = backward.scratchpad_desc();
  }
  return result;
}

void gemm(const Gemm& shape, const float* a, const float* b, float* c) {
  const dnnl_status_t status =
      dnnl_sgemm(shape.transpose_a ? 'T' : 'N', shape.transpose_b ? 'T' : 'N', shape.m, shape.n, shape.k, shape.alpha,
                 a, shape.lda, b, shape.ldb, shape.beta, c, shape.ldc);
  if (status != dnnl_success) throw std::runtime_error("oneDNN could not multiply matrices");
}

MatmulPrimitive make_matmul(const Engine& engine, const Gemm& shape) {
  const MatmulOperands operands = matmul_operands(shape, kFloat, kFloat, MemoryDesc());
  return make_matmul_of(engine, operands, matmul_primitive(engine, shape, operands));
}

std::optional<MatmulPrimitive> make_bf16_matmul(const Engine& engine, const Gemm& shape, bool narrow, bool bias) {
  const MatmulOperands operands =
      matmul_operands(shape, kBf16, narrow ? kBf16 : kFloat, bias ? plain_desc({1, shape.n}) : MemoryDesc());
  try {
    const auto made = matmul_primitive(engine, shape, operands);
    if (std::string_view(made.impl_info_str()).starts_with("ref")) return std::nullopt;  // plain loops
    return make_matmul_of(engine, operands, made);
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_unimplemented) throw;
    return std::nullopt;
  }
}

void bind_matmul(Primitive& primitive, const void* a, const void* b, void* c, void* scratch) {
  primitive.bind(0, a);
  primitive.bind(1, b);
  primitive.bind(2, c);
  primitive.bind(3, scratch);
}

}  // namespace millrace::kernels::onednn
