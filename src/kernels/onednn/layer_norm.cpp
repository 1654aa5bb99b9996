// Layer norm over the last axis, row by row.
#include <algorithm>
#include <cmath>

#include "kernels/onednn/makers.h"
#include "kernels/onednn/parallel.h"
#include "kernels/onednn/row_loops.h"
#include "kernels/onednn/vector_clones.h"

namespace millrace::kernels::onednn {
namespace {

constexpr std::int64_t kColumns = 64;    // of one task of the gradients of weight and bias
constexpr std::int64_t kRowBlock = 128;  // rows summed before they join the total, which keeps rounding small

MILLRACE_VECTOR_CLONES void normalise(const float* x, float mean, float inverse, const float* w, const float* b,
                                      float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * inverse * w[i] + b[i];
}

// g = dy · w, and x̂ for the products with it
MILLRACE_VECTOR_CLONES void weigh(const float* x, const float* dy, const float* w, float mean, float inverse, float* g,
                                  float* xhat, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    g[i] = dy[i] * w[i];
    xhat[i] = (x[i] - mean) * inverse;
  }
}

MILLRACE_VECTOR_CLONES void gradients(const float* g, const float* xhat, float inverse, float a, float b, float* dx,
                                      std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) dx[i] = inverse * (g[i] - a - xhat[i] * b);
}

MILLRACE_VECTOR_CLONES void add_weight_gradients(const float* x, const float* dy, float mean, float inverse, float* dw,
                                                 float* db, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    dw[i] += dy[i] * ((x[i] - mean) * inverse);
    db[i] += dy[i];
  }
}

class LayerNorm : public OpKernel {
 public:
  explicit LayerNorm(const Site& site)
      : threads_(site.threads),
        width_(site.input_dims().back()),
        count_(site.input_elements() / width_),
        epsilon_(static_cast<float>(site.op.attributes.real("epsilon"))),
        training_(site.training) {}

  /// Mean and 1/σ of each row.
  std::int64_t extra_bytes() const override { return training_ ? 2 * count_ * kFloatBytes : 0; }
  /// A row of weighted gradients and one of x̂ for each thread.
  std::int64_t scratch_bytes() const override { return training_ ? threads_ * 2 * aligned(width_ * kFloatBytes) : 0; }

  void forward(const OpCall& call) override {
    parallel_tasks(threads_, count_, count_ * width_, [&](std::int64_t r, int) {
      const float* x = input(call) + r * width_;
      const float mean = row_sum(x, width_) / static_cast<float>(width_);
      const float variance = row_squares(x, mean, width_) / static_cast<float>(width_);
      const float inverse = 1.0F / std::sqrt(variance + epsilon_);
      if (training_) {
        extra(call)[2 * r] = mean;
        extra(call)[2 * r + 1] = inverse;
      }
      normalise(x, mean, inverse, parameter(call, 0), parameter(call, 1), output(call) + r * width_, width_);
    });
  }

  // With g = dy·w: dx = 1/σ · (g − mean(g) − x̂ · mean(g·x̂)).
  void backward_input(const OpCall& call) override {
    if (!input_gradient(call)) return;
    const std::int64_t stride = aligned(width_ * kFloatBytes) / kFloatBytes;
    parallel_tasks(threads_, count_, count_ * width_, [&](std::int64_t r, int thread) {
      float* g = scratch(call) + thread * 2 * stride;
      float* xhat = g + stride;
      const float mean = extra(call)[2 * r];
      const float inverse = extra(call)[2 * r + 1];
      weigh(input(call) + r * width_, output_gradient(call) + r * width_, parameter(call, 0), mean, inverse, g, xhat,
            width_);
      const float a = row_sum(g, width_) / static_cast<float>(width_);
      const float b = row_dot(g, xhat, width_) / static_cast<float>(width_);
      gradients(g, xhat, inverse, a, b, input_gradient(call) + r * width_, width_);
    });
  }

  void backward_weight(const OpCall& call) override {
    parallel_chunks(threads_, width_, kColumns, count_ * width_, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t n = end - begin;
      float dw[kColumns];
      float db[kColumns];
      for (std::int64_t first = 0; first < count_; first += kRowBlock) {
        std::fill_n(dw, n, 0.0F);
        std::fill_n(db, n, 0.0F);
        for (std::int64_t r = first; r < std::min(count_, first + kRowBlock); ++r) {
          const std::int64_t offset = r * width_ + begin;
          add_weight_gradients(input(call) + offset, output_gradient(call) + offset, extra(call)[2 * r],
                               extra(call)[2 * r + 1], dw, db, n);
        }
        row_add(parameter_gradient(call, 0) + begin, dw, n);
        row_add(parameter_gradient(call, 1) + begin, db, n);
      }
    });
  }

 private:
  int threads_;
  std::int64_t width_, count_;
  float epsilon_;
  bool training_;
};

}  // namespace

std::unique_ptr<OpKernel> make_layer_norm(const Site& site) { return std::make_unique<LayerNorm>(site); }

}  // namespace millrace::kernels::onednn
