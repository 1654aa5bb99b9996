// Dropout: the mask is a function of (seed, operator name, step, sample id, element), so backward makes it again.
#include <algorithm>

#include "base/hash.h"
#include "base/random.h"
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
        probability_(setup.op.attributes.real("probability")),
        seed_(setup.seed),
        name_(hash64(setup.op.name)),
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
  /// Kept elements are scaled by 1 / (1 − p), so that the expectation stays.
  void mask(const OpCall& call, const T* from, T* to) const {
    const T scale = static_cast<T>(1 / (1 - probability_));
    for (std::int64_t n = 0; n < rows_; ++n) {
      const Random random(seed_, name_, static_cast<std::uint64_t>(call.step),
                          static_cast<std::uint64_t>(call.samples[static_cast<std::size_t>(n)]));
      for (std::int64_t i = 0; i < elements_; ++i) {
        const bool keep = random.uniform(static_cast<std::uint64_t>(i)) >= probability_;
        to[n * elements_ + i] = keep ? from[n * elements_ + i] * scale : T{0};
      }
    }
  }

  std::int64_t rows_, elements_;
  double probability_;
  std::uint64_t seed_, name_;
  bool training_;
};

}  // namespace

std::unique_ptr<OpKernel> make_dropout(const Setup& setup) { return make_in_precision<Dropout>(setup); }

}  // namespace millrace::kernels::reference
