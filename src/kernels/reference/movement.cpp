// Operators that only move elements: concat, select, reshape and flatten (copies), transpose.
#include <algorithm>
#include <vector>

#include "kernels/reference/families.h"
#include "kernels/reference/operands.h"

namespace millrace::kernels::reference {
namespace {

/// Inputs joined along one axis: runs of `part` elements of each input, one after the other, for each outer index.
template <class T>
class Concat : public OpKernel {
 public:
  explicit Concat(const Setup& setup) : outer_(setup.rows) {
    const auto axis = setup.op.attributes.integer("axis");
    const Dims& dims = setup.output_dims();
    for (std::int64_t i = 0; i < axis; ++i) outer_ *= dims[static_cast<std::size_t>(i)];
    for (std::size_t i = 0; i < setup.op.inputs.size(); ++i) {
      parts_.push_back(setup.rows * element_count(setup.input_dims(i)) / outer_);
      joined_ += parts_.back();
    }
  }

  void forward(const OpCall& call) override {
    each_run([&](std::size_t operand, std::int64_t part, std::int64_t whole) {
      std::copy_n(input<T>(call, operand) + part, parts_[operand], output<T>(call) + whole);
    });
  }

  void backward_input(const OpCall& call) override {
    each_run([&](std::size_t operand, std::int64_t part, std::int64_t whole) {
      T* dx = input_gradient<T>(call, operand);
      if (dx) std::copy_n(output_gradient<T>(call) + whole, parts_[operand], dx + part);
    });
  }

 private:
  template <class Visit>
  void each_run(Visit visit) const {
    for (std::int64_t i = 0; i < outer_; ++i) {
      std::int64_t whole = i * joined_;
      for (std::size_t operand = 0; operand < parts_.size(); ++operand) {
        visit(operand, i * parts_[operand], whole);
        whole += parts_[operand];
      }
    }
  }

  std::int64_t outer_;
  std::int64_t joined_ = 0;
  std::vector<std::int64_t> parts_;
};

/// One run of `part_` elements out of every `whole_`.
template <class T>
class Select : public OpKernel {
 public:
  explicit Select(const Setup& setup) : outer_(setup.rows) {
    const auto axis = static_cast<std::size_t>(setup.op.attributes.integer("axis"));
    const Dims& dims = setup.input_dims();
    for (std::size_t i = 0; i < axis; ++i) outer_ *= dims[i];
    whole_ = setup.rows * element_count(dims) / outer_;
    part_ = whole_ / dims[axis];
    first_ = setup.op.attributes.integer("index") * part_;
  }

  void forward(const OpCall& call) override {
    for (std::int64_t i = 0; i < outer_; ++i) {
      std::copy_n(input<T>(call) + i * whole_ + first_, part_, output<T>(call) + i * part_);
    }
  }

  void backward_input(const OpCall& call) override {
    T* dx = input_gradient<T>(call);
    std::fill_n(dx, outer_ * whole_, T{0});
    for (std::int64_t i = 0; i < outer_; ++i) {
      std::copy_n(output_gradient<T>(call) + i * part_, part_, dx + i * whole_ + first_);
    }
  }

 private:
  std::int64_t outer_, whole_, part_, first_;
};

template <class T>
class Copy : public OpKernel {
 public:
  explicit Copy(const Setup& setup) : elements_(setup.rows * element_count(setup.output_dims())) {}

  void forward(const OpCall& call) override { std::copy_n(input<T>(call), elements_, output<T>(call)); }

  void backward_input(const OpCall& call) override {
    std::copy_n(output_gradient<T>(call), elements_, input_gradient<T>(call));
  }

 private:
  std::int64_t elements_;
};

/// Output axis i is input axis permutation[i].
template <class T>
class Transpose : public OpKernel {
 public:
  explicit Transpose(const Setup& setup) : rows_(setup.rows), dims_(setup.output_dims()), index_(dims_.size()) {
    const Dims& in = setup.input_dims();
    std::vector<std::int64_t> in_strides(in.size(), 1);
    for (std::size_t i = in.size() - 1; i > 0; --i) in_strides[i - 1] = in_strides[i] * in[i];
    for (const std::int64_t axis : setup.op.attributes.integers("permutation")) {
      strides_.push_back(in_strides[static_cast<std::size_t>(axis)]);
    }
  }

  void forward(const OpCall& call) override {
    const T* x = input<T>(call);
    T* y = output<T>(call);
    each_element([x, y](std::int64_t in, std::int64_t out) { y[out] = x[in]; });
  }

  void backward_input(const OpCall& call) override {
    const T* dy = output_gradient<T>(call);
    T* dx = input_gradient<T>(call);
    each_element([dx, dy](std::int64_t in, std::int64_t out) { dx[in] = dy[out]; });
  }

 private:
  /// Calls visit(input element, output element) in order of output elements.
  template <class Visit>
  void each_element(Visit visit) {
    const std::int64_t per_sample = element_count(dims_);
    for (std::int64_t n = 0; n < rows_; ++n) {
      std::fill(index_.begin(), index_.end(), 0);
      std::int64_t in = n * per_sample;
      for (std::int64_t out = 0; out < per_sample; ++out) {
        visit(in, n * per_sample + out);
        for (std::size_t axis = dims_.size(); axis-- > 0;) {
          in += strides_[axis];
          if (++index_[axis] < dims_[axis]) break;
          in -= strides_[axis] * dims_[axis];
          index_[axis] = 0;
        }
      }
    }
  }

  std::int64_t rows_;
  Dims dims_;
  std::vector<std::int64_t> strides_;  // of the input, by output axis
  std::vector<std::int64_t> index_;    // of the element being visited
};

}  // namespace

std::unique_ptr<OpKernel> make_concat(const Setup& setup) { return make_in_precision<Concat>(setup); }
std::unique_ptr<OpKernel> make_select(const Setup& setup) { return make_in_precision<Select>(setup); }
std::unique_ptr<OpKernel> make_copy(const Setup& setup) { return make_in_precision<Copy>(setup); }
std::unique_ptr<OpKernel> make_transpose(const Setup& setup) { return make_in_precision<Transpose>(setup); }

}  // namespace millrace::kernels::reference
