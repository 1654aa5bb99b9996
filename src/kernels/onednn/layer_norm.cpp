// Layer norm over the last axis, row by row.
#include <algorithm>
#include <cmath>

#include "kernels/onednn/makers.h"
#include "kernels/onednn/parallel.h"
#include "kernels/onednn/row_loops.h"
#include "kernels/onednn/vector_clones.h"

namespace millrace::kernels::onednn {
namespace {

constexpr std::int64_t kColumns = 512;   // of one task of the gradients of weight and bias, at most
constexpr std::int64_t kRowBlock = 128;  // rows summed before they join the total, which keeps rounding small

MILLRACE_VECTOR_CLONES void normalise(const float* x, float mean, float inverse, const float* w, const float* b,
                                      float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * inverse * w[i] + b[i];
}

/// Of one row: x̂ = (x − mean) / σ and g = dy · w.
struct Row {
  const float* x;
  const float* dy;
  const float* w;
  float mean, inverse;
};

// dx = 1/σ · (g − mean(g) − x̂ · mean(g·x̂))
MILLRACE_VECTOR_CLONES void gradients(const Row& row, float g, float g_xhat, float* __restrict dx, std::int64_t n) {
  const Row r = row;
  for (std::int64_t i = 0; i < n; ++i) {
    dx[i] = r.inverse * (r.dy[i] * r.w[i] - g - (r.x[i] - r.mean) * r.inverse * g_xhat);
  }
}

MILLRACE_VECTOR_CLONES void add_weight_gradients(const float* x, const float* dy, float mean, float inverse,
                                                 float* __restrict dw, float* __restrict db, std::int64_t n) {
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

  void forward(const OpCall& call) override {
    parallel_tasks(threads_, count_, count_ * width_, [&](std::int64_t r, int) {
      const float* x = input(call) + r * width_;
      float mean = 0, inverse = 0;
      if (call.again) {
        mean = extra(call)[2 * r];
        inverse = extra(call)[2 * r + 1];
      } else {
        mean = row_sum(x, width_) / static_cast<float>(width_);
        const float variance = row_squares(x, mean, width_) / static_cast<float>(width_);
        inverse = 1.0F / std::sqrt(variance + epsilon_);
        if (training_) {
          extra(call)[2 * r] = mean;
          extra(call)[2 * r + 1] = inverse;
        }
      }
      normalise(x, mean, inverse, parameter(call, 0), parameter(call, 1), output(call) + r * width_, width_);
    });
  }

  void backward_input(const OpCall& call) override {
    if (!input_gradient(call)) return;
    const float* const w = parameter(call, 0);
    parallel_tasks(threads_, count_, count_ * width_, [&](std::int64_t r, int) {
      const Row row{input(call) + r * width_, output_gradient(call) + r * width_, w, extra(call)[2 * r],
                    extra(call)[2 * r + 1]};
      const float g = row_dot(row.dy, w, width_) / static_cast<float>(width_);
      const float g_xhat =
          row_projection(row.dy, w, row.x, row.mean, width_) * row.inverse / static_cast<float>(width_);
      gradients(row, g, g_xhat, input_gradient(call) + r * width_, width_);
    });
  }

  bool can_overwrite() const override { return true; }
  void backward_weight(const OpCall& call) override {
    float* const weight = parameter_gradient(call, 0);
    float* const bias = parameter_gradient(call, 1);
    if (call.overwrite) {
      std::fill_n(weight, width_, 0.0F);
      std::fill_n(bias, width_, 0.0F);
    }
    const std::int64_t strip = std::min(kColumns, columns_of_thread(width_, threads_));
    parallel_chunks(threads_, width_, strip, count_ * width_, [&](std::int64_t begin, std::int64_t end) {
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
        row_add(weight + begin, dw, n);
        row_add(bias + begin, db, n);
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
