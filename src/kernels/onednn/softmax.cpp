// Softmax over the last axis, row by row.
#include "kernels/onednn/makers.h"
#include "kernels/onednn/parallel.h"
#include "kernels/onednn/row_loops.h"

namespace millrace::kernels::onednn {
namespace {

class Softmax : public OpKernel {
 public:
  explicit Softmax(const Site& site)
      : threads_(site.threads), width_(site.input_dims().back()), count_(site.input_elements() / width_) {}

  void forward(const OpCall& call) override {
    parallel_tasks(threads_, count_, count_ * width_, [&](std::int64_t r, int) {
      const float* x = input(call) + r * width_;
      float* y = output(call) + r * width_;
      row_scale(y, 1.0F / row_exp(x, row_max(x, width_), y, width_), width_);
    });
  }

  // dx = y · (dy − Σ y·dy)
  void backward_input(const OpCall& call) override {
    if (!input_gradient(call)) return;
    parallel_tasks(threads_, count_, count_ * width_, [&](std::int64_t r, int) {
      const float* y = output(call) + r * width_;
      const float* dy = output_gradient(call) + r * width_;
      row_softmax_gradient(y, dy, row_dot(y, dy, width_), 1.0F, input_gradient(call) + r * width_, width_);
    });
  }

 private:
  int threads_;
  std::int64_t width_, count_;
};

}  // namespace

std::unique_ptr<OpKernel> make_softmax(const Site& site) { return std::make_unique<Softmax>(site); }

}  // namespace millrace::kernels::onednn
