// ReLU, GELU, addition, product and copies: loops over all elements, whatever their layout.
#include <algorithm>

#include "kernels/onednn/makers.h"
#include "kernels/onednn/parallel.h"
#include "kernels/onednn/row_loops.h"
#include "kernels/onednn/vector_math.h"

namespace millrace::kernels::onednn {
namespace {

MILLRACE_VECTOR_CLONES void relu_loop(const float* x, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] > 0 ? x[i] : 0.0F;
}

// In loops of gradients dx may be dy: no element is read after it was written.
MILLRACE_VECTOR_CLONES void relu_gradient_loop(const float* y, const float* dy, float* dx, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) dx[i] = y[i] > 0 ? dy[i] : 0.0F;
}

MILLRACE_VECTOR_CLONES void sum_relu_loop(const float* a, const float* b, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float sum = a[i] + b[i];
    y[i] = sum > 0 ? sum : 0.0F;
  }
}

MILLRACE_VECTOR_CLONES void sum_relu_gradient_loop(const float* y, const float* dy, float* da, float* db,
                                                   std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = y[i] > 0 ? dy[i] : 0.0F;
    da[i] = g;
    db[i] = g;
  }
}

MILLRACE_VECTOR_CLONES void gelu_erf_loop(const float* x, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * vector_normal_cdf(x[i]);
}

// d/dx x·Φ(x) = Φ(x) + x·φ(x)
MILLRACE_VECTOR_CLONES void gelu_erf_gradient_loop(const float* x, const float* dy, float* dx, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float density = 0.398942280F * vector_exp(-0.5F * x[i] * x[i]);
    dx[i] = dy[i] * (vector_normal_cdf(x[i]) + x[i] * density);
  }
}

// GELU by tanh: x/2 · (1 + tanh u), u = √(2/π) · (x + 0.044715 x³)
constexpr float kRoot = 0.797884561F;
constexpr float kCubic = 0.044715F;

MILLRACE_VECTOR_CLONES void gelu_tanh_loop(const float* x, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float u = kRoot * (x[i] + kCubic * x[i] * x[i] * x[i]);
    y[i] = 0.5F * x[i] * (1.0F + vector_tanh(u));
  }
}

MILLRACE_VECTOR_CLONES void gelu_tanh_gradient_loop(const float* x, const float* dy, float* dx, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float square = x[i] * x[i];
    const float t = vector_tanh(kRoot * (x[i] + kCubic * square * x[i]));
    const float slope = kRoot * (1.0F + 3.0F * kCubic * square);
    dx[i] = dy[i] * (0.5F * (1.0F + t) + 0.5F * x[i] * (1.0F - t * t) * slope);
  }
}

/// Elements of all rows in the layout that the operator computes on.
class Elementwise : public OpKernel {
 protected:
  explicit Elementwise(const Site& site) : threads_(site.threads), count_(site.output_elements()) {}

  template <class F>
  void each_piece(F&& f) const {
    parallel_elements(threads_, count_, [&](std::int64_t begin, std::int64_t end) { f(begin, end - begin); });
  }
  void copy(const float* from, float* to) const {
    if (from == to) return;
    each_piece([=](std::int64_t i, std::int64_t n) { std::copy_n(from + i, n, to + i); });
  }

 private:
  int threads_;
  std::int64_t count_;
};

class Relu : public Elementwise {
 public:
  explicit Relu(const Site& site) : Elementwise(site) {}

  bool overwrites_gradient() const override { return true; }

  void forward(const OpCall& call) override {
    each_piece([&](std::int64_t i, std::int64_t n) { relu_loop(input(call) + i, output(call) + i, n); });
  }
  void backward_input(const OpCall& call) override {
    if (!input_gradient(call)) return;
    each_piece([&](std::int64_t i, std::int64_t n) {
      relu_gradient_loop(output(call) + i, output_gradient(call) + i, input_gradient(call) + i, n);
    });
  }
};

class Gelu : public Elementwise {
 public:
  explicit Gelu(const Site& site) : Elementwise(site), tanh_(site.op.attributes.text("approximate") == "tanh") {}

  bool overwrites_gradient() const override { return true; }

  void forward(const OpCall& call) override {
    const auto loop = tanh_ ? gelu_tanh_loop : gelu_erf_loop;
    each_piece([&](std::int64_t i, std::int64_t n) { loop(input(call) + i, output(call) + i, n); });
  }
  void backward_input(const OpCall& call) override {
    if (!input_gradient(call)) return;
    const auto loop = tanh_ ? gelu_tanh_gradient_loop : gelu_erf_gradient_loop;
    each_piece([&](std::int64_t i, std::int64_t n) {
      loop(input(call) + i, output_gradient(call) + i, input_gradient(call) + i, n);
    });
  }

 private:
  bool tanh_;
};

class Add : public Elementwise {
 public:
  Add(const Site& site, bool relu) : Elementwise(site), relu_(relu) {}

  bool overwrites_gradient() const override { return true; }

  void forward(const OpCall& call) override {
    const auto loop = relu_ ? sum_relu_loop : row_sum_of;
    each_piece(
        [&](std::int64_t i, std::int64_t n) { loop(input(call, 0) + i, input(call, 1) + i, output(call) + i, n); });
  }

  // Either input's gradient may lie where the output's does: with ReLU both are written in one visit.
  void backward_input(const OpCall& call) override {
    float* const a = input_gradient(call, 0);
    float* const b = input_gradient(call, 1);
    if (!relu_) {
      for (float* gradient : {a, b}) {
        if (gradient) copy(output_gradient(call), gradient);
      }
    } else if (a || b) {
      each_piece([&](std::int64_t i, std::int64_t n) {
        sum_relu_gradient_loop(output(call) + i, output_gradient(call) + i, (a ? a : b) + i, (b ? b : a) + i, n);
      });
    }
  }

 private:
  bool relu_;  // the operator behind it is part of it
};

class Multiply : public Elementwise {
 public:
  explicit Multiply(const Site& site) : Elementwise(site) {}

  void forward(const OpCall& call) override {
    each_piece([&](std::int64_t i, std::int64_t n) {
      row_product(input(call, 0) + i, input(call, 1) + i, output(call) + i, n);
    });
  }
  void backward_input(const OpCall& call) override {
    for (std::size_t k = 0; k < 2; ++k) {
      if (!input_gradient(call, k)) continue;
      each_piece([&](std::int64_t i, std::int64_t n) {
        row_product(output_gradient(call) + i, input(call, 1 - k) + i, input_gradient(call, k) + i, n);
      });
    }
  }
};

class Copy : public Elementwise {
 public:
  explicit Copy(const Site& site) : Elementwise(site) {}

  bool overwrites_gradient() const override { return true; }

  void forward(const OpCall& call) override { copy(input(call), output(call)); }
  void backward_input(const OpCall& call) override {
    if (input_gradient(call)) copy(output_gradient(call), input_gradient(call));
  }
};

}  // namespace

std::unique_ptr<OpKernel> make_relu(const Site& site) { return std::make_unique<Relu>(site); }
std::unique_ptr<OpKernel> make_gelu(const Site& site) { return std::make_unique<Gelu>(site); }
std::unique_ptr<OpKernel> make_add(const Site& site, bool relu) { return std::make_unique<Add>(site, relu); }
std::unique_ptr<OpKernel> make_multiply(const Site& site) { return std::make_unique<Multiply>(site); }
std::unique_ptr<OpKernel> make_copy(const Site& site) { return std::make_unique<Copy>(site); }

}  // namespace millrace::kernels::onednn
