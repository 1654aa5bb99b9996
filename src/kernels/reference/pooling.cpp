// Pooling over windows of each channel: maximum, average (padding counts as zeros), and the average of a whole channel.
#include <algorithm>
#include <limits>

#include "kernels/reference/families.h"
#include "kernels/reference/operands.h"
#include "kernels/reference/sums.h"

namespace millrace::kernels::reference {
namespace {

/// One channel's windows; `planes` = rows · channels.
struct Windows {
  std::int64_t planes, height, width, out_height, out_width;
  std::int64_t kernel_height, kernel_width, stride_height, stride_width, padding_height, padding_width;

  explicit Windows(const Setup& setup)
      : planes(setup.rows * setup.input_dims()[0]),
        height(setup.input_dims()[1]),
        width(setup.input_dims()[2]),
        out_height(setup.output_dims()[1]),
        out_width(setup.output_dims()[2]),
        kernel_height(setup.op.attributes.integers("kernel")[0]),
        kernel_width(setup.op.attributes.integers("kernel")[1]),
        stride_height(setup.op.attributes.integers("stride")[0]),
        stride_width(setup.op.attributes.integers("stride")[1]),
        padding_height(setup.op.attributes.integers("padding")[0]),
        padding_width(setup.op.attributes.integers("padding")[1]) {}

  std::int64_t in_elements() const { return height * width; }
  std::int64_t out_elements() const { return out_height * out_width; }

  /// Calls visit(i) for the elements of the plane that lie in the window of output element `o`.
  template <class Visit>
  void each_element(std::int64_t o, Visit visit) const {
    const std::int64_t top = o / out_width * stride_height - padding_height;
    const std::int64_t left = o % out_width * stride_width - padding_width;
    for (std::int64_t h = std::max<std::int64_t>(top, 0); h < std::min(top + kernel_height, height); ++h) {
      for (std::int64_t w = std::max<std::int64_t>(left, 0); w < std::min(left + kernel_width, width); ++w) {
        visit(h * width + w);
      }
    }
  }
};

template <class T>
class MaxPool : public OpKernel {
 public:
  explicit MaxPool(const Setup& setup) : windows_(setup), training_(setup.training) {}

  /// Position of each maximum in its plane.
  std::int64_t extra_bytes() const override {
    return training_ ? windows_.planes * windows_.out_elements() * kIndexBytes : 0;
  }

  void forward(const OpCall& call) override {
    auto* positions = static_cast<std::int32_t*>(call.extra);
    for (std::int64_t plane = 0; plane < windows_.planes; ++plane) {
      const T* x = input<T>(call) + plane * windows_.in_elements();
      for (std::int64_t o = 0; o < windows_.out_elements(); ++o) {
        T best = -std::numeric_limits<T>::infinity();
        std::int64_t position = -1;
        windows_.each_element(o, [&](std::int64_t i) {
          if (position >= 0 && x[i] <= best) return;  // NaN passes
          best = x[i];
          position = i;
        });
        output<T>(call)[plane * windows_.out_elements() + o] = best;
        if (training_) positions[plane * windows_.out_elements() + o] = static_cast<std::int32_t>(position);
      }
    }
  }

  void backward_input(const OpCall& call) override {
    const auto* positions = static_cast<const std::int32_t*>(call.extra);
    std::fill_n(input_gradient<T>(call), windows_.planes * windows_.in_elements(), T{0});
    for (std::int64_t plane = 0; plane < windows_.planes; ++plane) {
      T* dx = input_gradient<T>(call) + plane * windows_.in_elements();
      for (std::int64_t o = 0; o < windows_.out_elements(); ++o) {
        const std::int64_t from = plane * windows_.out_elements() + o;
        if (positions[from] >= 0) dx[positions[from]] += output_gradient<T>(call)[from];
      }
    }
  }

 private:
  Windows windows_;
  bool training_;
};

template <class T>
class AveragePool : public OpKernel {
 public:
  explicit AveragePool(const Setup& setup)
      : windows_(setup), share_(T{1} / static_cast<T>(windows_.kernel_height * windows_.kernel_width)) {}

  void forward(const OpCall& call) override {
    for (std::int64_t plane = 0; plane < windows_.planes; ++plane) {
      const T* x = input<T>(call) + plane * windows_.in_elements();
      for (std::int64_t o = 0; o < windows_.out_elements(); ++o) {
        T sum = 0;
        windows_.each_element(o, [&](std::int64_t i) { sum += x[i]; });
        output<T>(call)[plane * windows_.out_elements() + o] = sum * share_;
      }
    }
  }

  void backward_input(const OpCall& call) override {
    std::fill_n(input_gradient<T>(call), windows_.planes * windows_.in_elements(), T{0});
    for (std::int64_t plane = 0; plane < windows_.planes; ++plane) {
      T* dx = input_gradient<T>(call) + plane * windows_.in_elements();
      for (std::int64_t o = 0; o < windows_.out_elements(); ++o) {
        const T part = output_gradient<T>(call)[plane * windows_.out_elements() + o] * share_;
        windows_.each_element(o, [&](std::int64_t i) { dx[i] += part; });
      }
    }
  }

 private:
  Windows windows_;
  T share_;
};

template <class T>
class GlobalAveragePool : public OpKernel {
 public:
  explicit GlobalAveragePool(const Setup& setup)
      : planes_(setup.rows * setup.input_dims()[0]), elements_(setup.input_dims()[1] * setup.input_dims()[2]) {}

  void forward(const OpCall& call) override {
    for (std::int64_t plane = 0; plane < planes_; ++plane) {
      const T* x = input<T>(call) + plane * elements_;
      output<T>(call)[plane] = lane_sum<T>(elements_, [x](std::int64_t i) { return x[i]; }) / static_cast<T>(elements_);
    }
  }

  void backward_input(const OpCall& call) override {
    for (std::int64_t plane = 0; plane < planes_; ++plane) {
      std::fill_n(input_gradient<T>(call) + plane * elements_, elements_,
                  output_gradient<T>(call)[plane] / static_cast<T>(elements_));
    }
  }

 private:
  std::int64_t planes_, elements_;
};

}  // namespace

std::unique_ptr<OpKernel> make_max_pool(const Setup& setup) { return make_in_precision<MaxPool>(setup); }
std::unique_ptr<OpKernel> make_average_pool(const Setup& setup) { return make_in_precision<AveragePool>(setup); }
std::unique_ptr<OpKernel> make_global_average_pool(const Setup& setup) {
  return make_in_precision<GlobalAveragePool>(setup);
}

}  // namespace millrace::kernels::reference
