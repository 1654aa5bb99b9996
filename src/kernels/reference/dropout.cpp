// Dropout of whole samples.
#include <algorithm>

#include "kernels/reference/dropout_mask.h"
#include "kernels/reference/families.h"
#include "kernels/reference/operands.h"

namespace millrace::kernels::reference {
namespace {

template <class T>
class Dropout : public OpKernel {
 public:
  explicit Dropout(const Setup& setup)
      : rows_(setup.rows),
        elements_(element_count(setup.input_dims())),
        mask_(setup.op, setup.seed),
        training_(setup.training) {}

  void forward(const OpCall& call) override {
    if (training_) {
      mask(call, input<T>(call), output<T>(call));
    } else {
      std::copy_n(input<T>(call), rows_ * elements_, output<T>(call));
    }
  }

  void backward_input(const OpCall& call) override { mask(call, output_gradient<T>(call), input_gradient<T>(call)); }

 private:
  void mask(const OpCall& call, const T* from, T* to) const {
    mask_.apply(call, from, to, [this](auto run) { run(std::int64_t{0}, elements_); });
  }

  std::int64_t rows_, elements_;
  DropoutMask mask_;
  bool training_;
};

}  // namespace

std::unique_ptr<OpKernel> make_dropout(const Setup& setup) { return make_in_precision<Dropout>(setup); }

}  // namespace millrace::kernels::reference
