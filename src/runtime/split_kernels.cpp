// Plain loops over the part that a rank has.
#include "runtime/split_kernels.h"

#include <algorithm>
#include <cmath>

#include "kernels/reference/dropout_mask.h"
#include "kernels/reference/index_check.h"
#include "runtime/part_conversion.h"

namespace millrace::runtime {
namespace {

using kernels::OpCall;
using kernels::reference::checked_index;

struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
  bool holds(std::int64_t at) const { return at >= begin && at < end; }
};

Range own_range(const SplitSetup& setup) {
  const auto index = static_cast<std::size_t>(setup.group.index());
  return {setup.split.holding.borders[index], setup.split.holding.borders[index + 1]};
}

template <class T>
class SplitTable final : public kernels::OpKernel {
 public:
  explicit SplitTable(const SplitSetup& setup)
      : op_(setup.op),
        rows_(own_range(setup)),
        per_sample_(setup.graph.tensor(setup.op.inputs[0]).shape.elements_per_sample()),
        positions_(setup.options.rows * per_sample_),
        vocabulary_(setup.split.dims[0]),
        width_(setup.split.dims[1]) {}

  void forward(const OpCall& call) override {
    T* y = static_cast<T*>(call.outputs[0]);
    std::fill_n(y, positions_ * width_, T{0});
    each_own(call, [&](std::int64_t at, std::int64_t row) {
      std::copy_n(static_cast<const T*>(call.parameters[0]) + row * width_, width_, y + at * width_);
    });
  }

  void backward_input(const OpCall&) override {}  // indices have no gradient

  void backward_weight(const OpCall& call) override {
    each_own(call, [&](std::int64_t at, std::int64_t row) {
      T* sum = static_cast<T*>(call.parameter_gradients[0]) + row * width_;
      const T* dy = static_cast<const T*>(call.output_gradients[0]) + at * width_;
      for (std::int64_t i = 0; i < width_; ++i) sum[i] += dy[i];
    });
  }

 private:
  template <class F>
  void each_own(const OpCall& call, F f) const {
    for (std::int64_t i = 0; i < positions_; ++i) {
      const auto index = static_cast<const std::int32_t*>(call.inputs[0])[i];
      const std::int64_t row = checked_index(index, vocabulary_, op_, i / per_sample_);
      if (rows_.holds(row)) f(i, row - rows_.begin);
    }
  }

  const Operator& op_;
  Range rows_;
  std::int64_t per_sample_, positions_, vocabulary_, width_;
};

template <class T>
class SplitClasses final : public kernels::OpKernel {
 public:
  explicit SplitClasses(const SplitSetup& setup)
      : op_(setup.op),
        group_(setup.group),
        classes_(own_range(setup)),
        all_classes_(setup.split.dims.back()),
        rows_(setup.options.rows),
        positions_(setup.graph.tensor(setup.op.inputs[1]).shape.elements_per_sample()),
        gathered_(static_cast<std::size_t>(group_.size() * rows_ * positions_ * kEntries)) {}

  void forward(const OpCall& call) override {
    gather(call);
    T* shift = static_cast<T*>(call.extra);
    for (std::int64_t n = 0; n < rows_; ++n) {
      double loss = 0, correct = 0;
      for (std::int64_t i = n * positions_; i < (n + 1) * positions_; ++i) {
        const Row row = put_together(i);
        shift[i] = static_cast<T>(row.log_sum);
        loss += row.log_sum - row.right;
        correct += row.best == label(call, i) ? 1.0 : 0.0;
      }
      static_cast<T*>(call.outputs[0])[n] = static_cast<T>(loss / static_cast<double>(positions_));
      static_cast<T*>(call.outputs[1])[n] = static_cast<T>(correct / static_cast<double>(positions_));
    }
  }

  // dx = row weight / positions · (softmax(x) − onehot(label)).
  void backward_input(const OpCall& call) override {
    if (call.input_gradients[0] == nullptr) return;
    for (std::int64_t i = 0; i < rows_ * positions_; ++i) {
      const T* x = static_cast<const T*>(call.inputs[0]) + i * classes_.size();
      T* dx = static_cast<T*>(call.input_gradients[0]) + i * classes_.size();
      const T weight = static_cast<const T*>(call.output_gradients[0])[i / positions_] / static_cast<T>(positions_);
      const T shift = static_cast<const T*>(call.extra)[i];
      for (std::int64_t k = 0; k < classes_.size(); ++k) dx[k] = weight * std::exp(x[k] - shift);
      if (const std::int64_t right = label(call, i); classes_.holds(right)) dx[right - classes_.begin] -= weight;
    }
  }

  std::int64_t extra_bytes() const override { return rows_ * positions_ * static_cast<std::int64_t>(sizeof(T)); }

 private:
  static constexpr std::int64_t kEntries = 4;  // of a row and part: maximum, its class, sum of exponentials, label's

  struct Row {
    double log_sum = 0;
    double right = 0;  // the label's logit
    std::int64_t best = 0;
  };

  std::int64_t label(const OpCall& call, std::int64_t i) const {
    return checked_index(static_cast<const std::int32_t*>(call.inputs[1])[i], all_classes_, op_, i / positions_);
  }

  double* entry(std::int64_t part, std::int64_t i) {
    return gathered_.data() + (part * rows_ * positions_ + i) * kEntries;
  }

  // Each part writes its own entries; those of the others are zero, so that the sum has all of them.
  void gather(const OpCall& call) {
    std::fill(gathered_.begin(), gathered_.end(), 0.0);
    for (std::int64_t i = 0; i < rows_ * positions_; ++i) {
      const T* x = static_cast<const T*>(call.inputs[0]) + i * classes_.size();
      const T* most = std::max_element(x, x + classes_.size());  // the first of equals
      double* own = entry(group_.index(), i);
      own[0] = static_cast<double>(*most);
      own[1] = static_cast<double>(classes_.begin + (most - x));
      for (std::int64_t k = 0; k < classes_.size(); ++k) own[2] += std::exp(static_cast<double>(x[k] - *most));
      const std::int64_t right = label(call, i);
      if (classes_.holds(right)) own[3] = static_cast<double>(x[right - classes_.begin]);
    }
    group_.sum(gathered_.data(), static_cast<std::int64_t>(gathered_.size()), kernels::Precision::fp64, sum_);
    group_.wait(sum_);
  }

  Row put_together(std::int64_t i) {
    double most = entry(0, i)[0];
    Row row{0, 0, static_cast<std::int64_t>(entry(0, i)[1])};
    for (std::int64_t part = 1; part < group_.size(); ++part) {
      if (entry(part, i)[0] <= most) continue;
      most = entry(part, i)[0];
      row.best = static_cast<std::int64_t>(entry(part, i)[1]);
    }
    double sum = 0;
    for (std::int64_t part = 0; part < group_.size(); ++part) {
      sum += entry(part, i)[2] * std::exp(entry(part, i)[0] - most);
      row.right += entry(part, i)[3];
    }
    row.log_sum = most + std::log(sum);
    return row;
  }

  const Operator& op_;
  PartGroup& group_;
  Range classes_;
  std::int64_t all_classes_, rows_, positions_;
  std::vector<double> gathered_;
  PartGroup::Tickets sum_;
};

template <class T>
class SplitMask final : public kernels::OpKernel {
 public:
  explicit SplitMask(const SplitSetup& setup)
      : region_(held_region(setup.split.dims, 0, setup.split.holding, setup.group.index())),
        rows_(setup.options.rows),
        mask_(setup.op, setup.options.seed),
        training_(setup.options.training) {}

  void forward(const OpCall& call) override {
    const T* x = static_cast<const T*>(call.inputs[0]);
    T* y = static_cast<T*>(call.outputs[0]);
    if (training_) {
      mask(call, x, y);
    } else {
      std::copy_n(x, rows_ * region_.elements(), y);
    }
  }

  void backward_input(const OpCall& call) override {
    if (call.input_gradients[0] == nullptr) return;
    mask(call, static_cast<const T*>(call.output_gradients[0]), static_cast<T*>(call.input_gradients[0]));
  }

 private:
  void mask(const OpCall& call, const T* from, T* to) const {
    mask_.apply(call, from, to, [this](auto run) { each_run(region_, run); });
  }

  Region region_;
  std::int64_t rows_;
  kernels::reference::DropoutMask mask_;
  bool training_;
};

}  // namespace

template <class T>
std::unique_ptr<kernels::OpKernel> make_split_table(const SplitSetup& setup) {
  return std::make_unique<SplitTable<T>>(setup);
}

template <class T>
std::unique_ptr<kernels::OpKernel> make_split_classes(const SplitSetup& setup) {
  return std::make_unique<SplitClasses<T>>(setup);
}

template <class T>
std::unique_ptr<kernels::OpKernel> make_split_mask(const SplitSetup& setup) {
  return std::make_unique<SplitMask<T>>(setup);
}

template std::unique_ptr<kernels::OpKernel> make_split_table<float>(const SplitSetup&);
template std::unique_ptr<kernels::OpKernel> make_split_table<double>(const SplitSetup&);
template std::unique_ptr<kernels::OpKernel> make_split_classes<float>(const SplitSetup&);
template std::unique_ptr<kernels::OpKernel> make_split_classes<double>(const SplitSetup&);
template std::unique_ptr<kernels::OpKernel> make_split_mask<float>(const SplitSetup&);
template std::unique_ptr<kernels::OpKernel> make_split_mask<double>(const SplitSetup&);

}  // namespace millrace::runtime
