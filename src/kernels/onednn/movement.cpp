// Concatenation (runs of elements), transposition (by oneDNN's reorders) and the average over each image.
#include <algorithm>
#include <vector>

#include "kernels/onednn/makers.h"
#include "kernels/onednn/parallel.h"
#include "kernels/onednn/row_loops.h"

namespace millrace::kernels::onednn {
namespace {

/// Inputs joined along one axis: runs of `part` elements of each input, one after the other, for each outer index.
/// Channels in blocks join in the same way, where all parts fill their blocks.
class Concat : public OpKernel {
 public:
  explicit Concat(const Site& site) : threads_(site.threads), outer_(site.rows) {
    const auto axis = static_cast<std::size_t>(site.op.attributes.integer("axis"));
    for (std::size_t i = 0; i < axis; ++i) outer_ *= site.output_dims()[i];
    for (std::size_t i = 0; i < site.op.inputs.size(); ++i) {
      parts_.push_back(site.input_elements(i) / outer_);
      joined_ += parts_.back();
    }
  }

  void forward(const OpCall& call) override {
    each_run([&](std::size_t operand, std::int64_t part, std::int64_t whole) {
      std::copy_n(input(call, operand) + part, parts_[operand], output(call) + whole);
    });
  }

  void backward_input(const OpCall& call) override {
    each_run([&](std::size_t operand, std::int64_t part, std::int64_t whole) {
      float* dx = input_gradient(call, operand);
      if (dx) std::copy_n(output_gradient(call) + whole, parts_[operand], dx + part);
    });
  }

 private:
  template <class Visit>
  void each_run(Visit visit) const {
    parallel_tasks(threads_, outer_, outer_ * joined_, [&](std::int64_t i, int) {
      std::int64_t whole = i * joined_;
      for (std::size_t operand = 0; operand < parts_.size(); ++operand) {
        visit(operand, i * parts_[operand], whole);
        whole += parts_[operand];
      }
    });
  }

  int threads_;
  std::int64_t outer_;
  std::int64_t joined_ = 0;
  std::vector<std::int64_t> parts_;
};

/// Output axis i is input axis permutation[i].
class Transpose : public OpKernel {
 public:
  explicit Transpose(const Site& site) {
    memory::dims dims{site.rows};
    dims.insert(dims.end(), site.output_dims().begin(), site.output_dims().end());
    const Dims& in = site.input_dims();
    memory::dims in_strides(in.size(), 1);
    for (std::size_t i = in.size() - 1; i > 0; --i) in_strides[i - 1] = in_strides[i] * in[i];
    memory::dims strides{element_count(in)};
    for (const std::int64_t axis : site.op.attributes.integers("permutation")) {
      strides.push_back(in_strides[static_cast<std::size_t>(axis)]);
    }
    const MemoryDesc from = strided_desc(dims, strides);
    const MemoryDesc to = plain_desc(dims);
    forward_ = make_reorder(site.engine, from, to);
    if (site.training) backward_ = make_reorder(site.engine, to, from);
  }

  std::int64_t scratch_bytes() const override { return std::max(forward_.scratch, backward_.scratch); }

  void forward(const OpCall& call) override { run(forward_, call.inputs[0], call.outputs[0], call.scratch); }
  void backward_input(const OpCall& call) override {
    if (call.input_gradients[0]) run(backward_, call.output_gradients[0], call.input_gradients[0], call.scratch);
  }

 private:
  static void run(Reorder& reorder, const void* from, void* to, void* scratch) {
    reorder.primitive.bind(0, from);
    reorder.primitive.bind(1, to);
    reorder.primitive.bind(2, scratch);
    reorder.primitive.execute();
  }

  Reorder forward_, backward_;
};

/// [C, H, W] -> [C]; the image may lie in blocks of channels, its averages are plain.
class GlobalAveragePool : public OpKernel {
 public:
  explicit GlobalAveragePool(const Site& site)
      : threads_(site.threads),
        channels_(site.input_dims()[0]),
        block_(site.block ? site.block : 1),
        blocks_((channels_ + block_ - 1) / block_),
        tasks_(site.rows * blocks_),
        places_(site.input_dims()[1] * site.input_dims()[2]) {}

  void forward(const OpCall& call) override {
    parallel_tasks(threads_, tasks_, tasks_ * block_ * places_, [&](std::int64_t task, int) {
      const float* x = input(call) + task * block_ * places_;
      float* y = output(call) + plain(task);
      if (block_ == 1) {
        y[0] = row_sum(x, places_) / static_cast<float>(places_);
        return;
      }
      std::fill_n(y, lanes(task), 0.0F);
      for (std::int64_t p = 0; p < places_; ++p) row_add(y, x + p * block_, lanes(task));
      for (std::int64_t l = 0; l < lanes(task); ++l) y[l] /= static_cast<float>(places_);
    });
  }

  void backward_input(const OpCall& call) override {
    if (!input_gradient(call)) return;
    parallel_tasks(threads_, tasks_, tasks_ * block_ * places_, [&](std::int64_t task, int) {
      const float* dy = output_gradient(call) + plain(task);
      float* dx = input_gradient(call) + task * block_ * places_;
      std::fill_n(dx, block_, 0.0F);
      for (std::int64_t l = 0; l < lanes(task); ++l) dx[l] = dy[l] / static_cast<float>(places_);
      if (block_ == 1) {
        std::fill_n(dx, places_, dx[0]);
      } else {
        for (std::int64_t p = 1; p < places_; ++p) std::copy_n(dx, block_, dx + p * block_);
      }
    });
  }

 private:
  /// First channel of a block of a sample, in the plain averages of all samples.
  std::int64_t plain(std::int64_t task) const { return task / blocks_ * channels_ + task % blocks_ * block_; }
  /// Channels of the block but for those that fill it up.
  std::int64_t lanes(std::int64_t task) const { return std::min(block_, channels_ - task % blocks_ * block_); }

  int threads_;
  std::int64_t channels_, block_, blocks_, tasks_, places_;
};

}  // namespace

std::unique_ptr<OpKernel> make_concat(const Site& site) { return std::make_unique<Concat>(site); }
std::unique_ptr<OpKernel> make_transpose(const Site& site) { return std::make_unique<Transpose>(site); }
std::unique_ptr<OpKernel> make_global_average_pool(const Site& site) {
  return std::make_unique<GlobalAveragePool>(site);
}

}  // namespace millrace::kernels::onednn
