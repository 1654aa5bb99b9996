// Attention by heads and blocks of rows: scores live in a block's scratch only and are computed again in backward.
#include <algorithm>
#include <cmath>

#include "kernels/onednn/makers.h"
#include "kernels/onednn/parallel.h"
#include "kernels/onednn/row_loops.h"

namespace millrace::kernels::onednn {
namespace {

constexpr std::int64_t kBlock = 64;  // rows of scores at a time: they stay in the second-level cache

class Attention : public OpKernel {
 public:
  explicit Attention(const Site& site)
      : threads_(site.threads),
        rows_(site.rows),
        heads_(site.op.attributes.integer("heads")),
        length_(site.output_dims()[0]),
        width_(site.output_dims()[1]),
        depth_(width_ / heads_),
        causal_(site.op.attributes.boolean("causal")),
        training_(site.training),
        scale_(1.0F / std::sqrt(static_cast<float>(depth_))) {}

  /// log Σ e^score of each query of each head.
  std::int64_t extra_bytes() const override { return training_ ? rows_ * heads_ * length_ * kFloatBytes : 0; }
  /// A block of probabilities for each thread, and one of their gradients.
  std::int64_t scratch_bytes() const override { return threads_ * (training_ ? 2 : 1) * block_bytes(); }

  void forward(const OpCall& call) override {
    each_head([&](std::int64_t row, std::int64_t head, int thread) {
      const float* q = input(call) + head_offset(row, head);
      const float* v = q + 2 * depth_;
      float* y = output(call) + row * length_ * width_ + head * depth_;
      float* p = block(call, thread, 0);
      float* kept = training_ ? extra(call) + (row * heads_ + head) * length_ : nullptr;
      for (std::int64_t first = 0; first < length_; first += kBlock) {
        const std::int64_t count = std::min(kBlock, length_ - first);
        const std::int64_t keys = causal_ ? first + count : length_;
        scores(q, first, count, keys, p);
        for (std::int64_t i = 0; i < count; ++i) {
          float* line = p + i * keys;
          const std::int64_t seen = causal_ ? first + i + 1 : length_;
          const float top = row_max(line, seen);
          const float sum = row_exp(line, top, line, seen);
          row_scale(line, 1.0F / sum, seen);
          std::fill(line + seen, line + keys, 0.0F);
          if (kept) kept[first + i] = top + std::log(sum);
        }
        gemm({.m = count, .n = depth_, .k = keys, .lda = keys, .ldb = 3 * width_, .ldc = width_}, p, v,
             y + first * width_);
      }
    });
  }

  // With P the probabilities, D = Σ P·dP of a row: dV = Pᵀ·dY, dP = dY·Vᵀ, dS = P·(dP − D), dQ = dS·K, dK = dSᵀ·Q.
  void backward_input(const OpCall& call) override {
    if (!input_gradient(call)) return;
    each_head([&](std::int64_t row, std::int64_t head, int thread) {
      const float* q = input(call) + head_offset(row, head);
      const float* k = q + depth_;
      const float* v = q + 2 * depth_;
      float* dq = input_gradient(call) + head_offset(row, head);
      float* dk = dq + depth_;
      float* dv = dq + 2 * depth_;
      const float* dy = output_gradient(call) + row * length_ * width_ + head * depth_;
      const float* kept = extra(call) + (row * heads_ + head) * length_;
      float* p = block(call, thread, 0);
      float* dp = block(call, thread, 1);
      for (std::int64_t t = 0; t < length_; ++t) std::fill_n(dk + t * 3 * width_, 2 * depth_, 0.0F);
      for (std::int64_t first = 0; first < length_; first += kBlock) {
        const std::int64_t count = std::min(kBlock, length_ - first);
        const std::int64_t keys = causal_ ? first + count : length_;
        const float* g = dy + first * width_;
        const std::int64_t three = 3 * width_;
        scores(q, first, count, keys, p);
        gemm({.transpose_b = true, .m = count, .n = keys, .k = depth_, .lda = width_, .ldb = three, .ldc = keys}, g, v,
             dp);
        for (std::int64_t i = 0; i < count; ++i) {
          const std::int64_t seen = causal_ ? first + i + 1 : length_;
          float* line = p + i * keys;
          float* gradient = dp + i * keys;
          row_exp(line, kept[first + i], line, seen);
          std::fill(line + seen, line + keys, 0.0F);
          row_softmax_gradient(line, gradient, row_dot(line, gradient, seen), scale_, gradient, seen);
          std::fill(gradient + seen, gradient + keys, 0.0F);
        }
        gemm({.transpose_a = true,
              .m = keys,
              .n = depth_,
              .k = count,
              .lda = keys,
              .ldb = width_,
              .ldc = three,
              .beta = 1.0F},
             p, g, dv);
        gemm({.m = count, .n = depth_, .k = keys, .lda = keys, .ldb = three, .ldc = three}, dp, k, dq + first * three);
        gemm({.transpose_a = true,
              .m = keys,
              .n = depth_,
              .k = count,
              .lda = keys,
              .ldb = three,
              .ldc = three,
              .beta = 1.0F},
             dp, q + first * three, dk);
      }
    });
  }

 private:
  std::int64_t block_bytes() const { return aligned(std::min(kBlock, length_) * length_ * kFloatBytes); }

  float* block(const OpCall& call, int thread, int which) const {
    return scratch(call) + (thread * (training_ ? 2 : 1) + which) * (block_bytes() / kFloatBytes);
  }

  /// Features of qkv are ordered (heads, 3, depth).
  std::int64_t head_offset(std::int64_t row, std::int64_t head) const {
    return row * length_ * 3 * width_ + head * 3 * depth_;
  }

  template <class F>
  void each_head(F&& f) const {
    parallel_tasks(threads_, rows_ * heads_, rows_ * heads_ * length_ * length_,
                   [&](std::int64_t task, int thread) { f(task / heads_, task % heads_, thread); });
  }

  /// Scaled products of `count` queries from `first` with the first `keys` keys.
  void scores(const float* q, std::int64_t first, std::int64_t count, std::int64_t keys, float* p) const {
    gemm({.transpose_b = true,
          .m = count,
          .n = keys,
          .k = depth_,
          .lda = 3 * width_,
          .ldb = 3 * width_,
          .ldc = keys,
          .alpha = scale_},
         q + first * 3 * width_, q + depth_, p);
  }

  int threads_;
  std::int64_t rows_, heads_, length_, width_, depth_;
  bool causal_, training_;
  float scale_;
};

}  // namespace

std::unique_ptr<OpKernel> make_attention(const Site& site) { return std::make_unique<Attention>(site); }

}  // namespace millrace::kernels::onednn
