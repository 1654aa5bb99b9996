// Embedding (a table's rows by token), position embedding (a table added to every sample) and segment embedding (a row
// of a table added to all positions of a part).
#include <algorithm>

#include "kernels/reference/families.h"
#include "kernels/reference/index_check.h"
#include "kernels/reference/operands.h"
#include "kernels/reference/sums.h"

namespace millrace::kernels::reference {
namespace {

template <class T>
class Embedding : public OpKernel {
 public:
  explicit Embedding(const Setup& setup)
      : op_(setup.op),
        per_sample_(element_count(setup.input_dims())),
        positions_(setup.rows * per_sample_),
        vocabulary_(setup.op.attributes.integer("vocabulary")),
        width_(setup.op.attributes.integer("width")) {}

  void forward(const OpCall& call) override {
    for (std::int64_t i = 0; i < positions_; ++i) {
      std::copy_n(parameter<T>(call, 0) + token(call, i) * width_, width_, output<T>(call) + i * width_);
    }
  }

  void backward_input(const OpCall&) override {}  // tokens have no gradient

  void backward_weight(const OpCall& call) override {
    for (std::int64_t i = 0; i < positions_; ++i) {
      add(parameter_gradient<T>(call, 0) + token(call, i) * width_, output_gradient<T>(call) + i * width_, width_);
    }
  }

 private:
  std::int64_t token(const OpCall& call, std::int64_t i) const {
    return checked_index(input<std::int32_t>(call)[i], vocabulary_, op_, i / per_sample_);
  }

  const Operator& op_;
  std::int64_t per_sample_, positions_, vocabulary_, width_;
};

template <class T>
class PositionEmbedding : public OpKernel {
 public:
  explicit PositionEmbedding(const Setup& setup) : rows_(setup.rows), elements_(element_count(setup.input_dims())) {}

  void forward(const OpCall& call) override {
    for (std::int64_t n = 0; n < rows_; ++n) {
      T* y = output<T>(call) + n * elements_;
      std::copy_n(input<T>(call) + n * elements_, elements_, y);
      add(y, parameter<T>(call, 0), elements_);
    }
  }

  void backward_input(const OpCall& call) override {
    T* dx = input_gradient<T>(call);
    if (dx) std::copy_n(output_gradient<T>(call), rows_ * elements_, dx);
  }

  void backward_weight(const OpCall& call) override {
    for (std::int64_t n = 0; n < rows_; ++n) {
      add(parameter_gradient<T>(call, 0), output_gradient<T>(call) + n * elements_, elements_);
    }
  }

 private:
  std::int64_t rows_, elements_;
};

template <class T>
class SegmentEmbedding : public OpKernel {
 public:
  explicit SegmentEmbedding(const Setup& setup)
      : rows_(setup.rows),
        positions_(setup.input_dims()[0]),
        width_(setup.input_dims()[1]),
        segments_(setup.op.attributes.integer("segments")) {}

  void forward(const OpCall& call) override {
    std::copy_n(input<T>(call), rows_ * positions_ * width_, output<T>(call));
    each_position(
        [&](std::int64_t at, std::int64_t row) { add(output<T>(call) + at, parameter<T>(call, 0) + row, width_); });
  }

  void backward_input(const OpCall& call) override {
    T* dx = input_gradient<T>(call);
    if (dx) std::copy_n(output_gradient<T>(call), rows_ * positions_ * width_, dx);
  }

  void backward_weight(const OpCall& call) override {
    each_position([&](std::int64_t at, std::int64_t row) {
      add(parameter_gradient<T>(call, 0) + row, output_gradient<T>(call) + at, width_);
    });
  }

 private:
  /// f(element of the sequence, element of the table), where the position and its segment start.
  template <class F>
  void each_position(F f) const {
    for (std::int64_t i = 0; i < rows_ * positions_; ++i) {
      f(i * width_, i % positions_ * segments_ / positions_ * width_);
    }
  }

  std::int64_t rows_, positions_, width_, segments_;
};

}  // namespace

std::unique_ptr<OpKernel> make_embedding(const Setup& setup) { return make_in_precision<Embedding>(setup); }
std::unique_ptr<OpKernel> make_position_embedding(const Setup& setup) {
  return make_in_precision<PositionEmbedding>(setup);
}
std::unique_ptr<OpKernel> make_segment_embedding(const Setup& setup) {
  return make_in_precision<SegmentEmbedding>(setup);
}

}  // namespace millrace::kernels::reference
