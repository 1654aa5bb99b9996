// Two-dimensional convolution: the patches of a sample as columns, then matrix products over them.
#include <algorithm>

#include "kernels/reference/families.h"
#include "kernels/reference/operands.h"
#include "kernels/reference/sums.h"

namespace millrace::kernels::reference {
namespace {

/// Shape of one sample's convolution. `terms` = C·kh·kw products make each of `places` = H'·W' results.
struct Geometry {
  std::int64_t channels, height, width, out_channels, out_height, out_width;
  std::int64_t kernel_height, kernel_width, stride_height, stride_width, padding_height, padding_width;

  explicit Geometry(const Setup& setup)
      : channels(setup.input_dims()[0]),
        height(setup.input_dims()[1]),
        width(setup.input_dims()[2]),
        out_channels(setup.output_dims()[0]),
        out_height(setup.output_dims()[1]),
        out_width(setup.output_dims()[2]),
        kernel_height(setup.op.attributes.integers("kernel")[0]),
        kernel_width(setup.op.attributes.integers("kernel")[1]),
        stride_height(setup.op.attributes.integers("stride")[0]),
        stride_width(setup.op.attributes.integers("stride")[1]),
        padding_height(setup.op.attributes.integers("padding")[0]),
        padding_width(setup.op.attributes.integers("padding")[1]) {}

  std::int64_t terms() const { return channels * kernel_height * kernel_width; }
  std::int64_t places() const { return out_height * out_width; }
  std::int64_t in_elements() const { return channels * height * width; }
  std::int64_t out_elements() const { return out_channels * places(); }

  /// Calls visit(column element, input element) for every product of one sample; input element -1 is padding.
  template <class Visit>
  void each_product(Visit visit) const {
    std::int64_t column = 0;
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t i = 0; i < kernel_height; ++i) {
        for (std::int64_t j = 0; j < kernel_width; ++j) {
          for (std::int64_t oh = 0; oh < out_height; ++oh) {
            const std::int64_t h = oh * stride_height + i - padding_height;
            const bool row_inside = h >= 0 && h < height;
            const std::int64_t row = (c * height + h) * width;
            for (std::int64_t ow = 0; ow < out_width; ++ow, ++column) {
              const std::int64_t w = ow * stride_width + j - padding_width;
              visit(column, row_inside && w >= 0 && w < width ? row + w : -1);
            }
          }
        }
      }
    }
  }
};

template <class T>
class Conv2d : public OpKernel {
 public:
  explicit Conv2d(const Setup& setup) : g_(setup), rows_(setup.rows), bias_(setup.op.parameters.size() > 1) {}

  std::int64_t scratch_bytes() const override {
    return g_.terms() * g_.places() * static_cast<std::int64_t>(sizeof(T));
  }

  void forward(const OpCall& call) override {
    const T* w = parameter<T>(call, 0);
    for (std::int64_t n = 0; n < rows_; ++n) {
      const T* columns = gather(call, n);
      for (std::int64_t o = 0; o < g_.out_channels; ++o) {
        T* y = output<T>(call) + n * g_.out_elements() + o * g_.places();
        std::fill_n(y, g_.places(), bias_ ? parameter<T>(call, 1)[o] : T{0});
        for (std::int64_t q = 0; q < g_.terms(); ++q) {
          add_scaled(y, w[o * g_.terms() + q], columns + q * g_.places(), g_.places());
        }
      }
    }
  }

  void backward_input(const OpCall& call) override {
    if (!input_gradient<T>(call)) return;
    const T* w = parameter<T>(call, 0);
    T* columns = static_cast<T*>(call.scratch);
    for (std::int64_t n = 0; n < rows_; ++n) {
      const T* dy = output_gradient<T>(call) + n * g_.out_elements();
      std::fill_n(columns, g_.terms() * g_.places(), T{0});
      for (std::int64_t o = 0; o < g_.out_channels; ++o) {
        for (std::int64_t q = 0; q < g_.terms(); ++q) {
          add_scaled(columns + q * g_.places(), w[o * g_.terms() + q], dy + o * g_.places(), g_.places());
        }
      }
      T* dx = input_gradient<T>(call) + n * g_.in_elements();
      std::fill_n(dx, g_.in_elements(), T{0});
      g_.each_product([columns, dx](std::int64_t column, std::int64_t element) {
        if (element >= 0) dx[element] += columns[column];
      });
    }
  }

  void backward_weight(const OpCall& call) override {
    T* dw = parameter_gradient<T>(call, 0);
    for (std::int64_t n = 0; n < rows_; ++n) {
      const T* dy = output_gradient<T>(call) + n * g_.out_elements();
      const T* columns = gather(call, n);
      for (std::int64_t o = 0; o < g_.out_channels; ++o) {
        const T* dy_o = dy + o * g_.places();
        for (std::int64_t q = 0; q < g_.terms(); ++q) {
          dw[o * g_.terms() + q] += dot(dy_o, columns + q * g_.places(), g_.places());
        }
        if (bias_) {
          parameter_gradient<T>(call, 1)[o] += lane_sum<T>(g_.places(), [dy_o](std::int64_t p) { return dy_o[p]; });
        }
      }
    }
  }

 private:
  /// The patches of sample `n`: [terms, places], zero where they reach into the padding.
  const T* gather(const OpCall& call, std::int64_t n) const {
    const T* x = input<T>(call) + n * g_.in_elements();
    T* columns = static_cast<T*>(call.scratch);
    g_.each_product([columns, x](std::int64_t column, std::int64_t element) {
      columns[column] = element >= 0 ? x[element] : T{0};
    });
    return columns;
  }

  Geometry g_;
  std::int64_t rows_;
  bool bias_;
};

}  // namespace

std::unique_ptr<OpKernel> make_conv2d(const Setup& setup) { return make_in_precision<Conv2d>(setup); }

}  // namespace millrace::kernels::reference
