// Dropout: the mask is a function of (seed, operator name, step, sample id, element), so backward makes it again.
#include <algorithm>

#include "base/hash.h"
#include "base/random.h"
#include "kernels/onednn/makers.h"
#include "kernels/onednn/parallel.h"

namespace millrace::kernels::onednn {
namespace {

constexpr std::int64_t kPiece = 2048;  // elements of one task: a random number costs as much as eight additions

class Dropout : public OpKernel {
 public:
  explicit Dropout(const Site& site)
      : threads_(site.threads),
        rows_(site.rows),
        elements_(element_count(site.input_dims())),
        probability_(site.op.attributes.real("probability")),
        seed_(site.seed),
        name_(hash64(site.op.name)),
        training_(site.training) {}

  void forward(const OpCall& call) override {
    if (training_) {
      mask(call, input(call), output(call));
    } else {
      parallel_elements(threads_, rows_ * elements_, [&](std::int64_t begin, std::int64_t end) {
        std::copy_n(input(call) + begin, end - begin, output(call) + begin);
      });
    }
  }

  void backward_input(const OpCall& call) override {
    if (input_gradient(call)) mask(call, output_gradient(call), input_gradient(call));
  }

 private:
  /// Kept elements are scaled by 1 / (1 − p), so that the expectation stays.
  void mask(const OpCall& call, const float* from, float* to) const {
    const auto scale = static_cast<float>(1 / (1 - probability_));
    const std::int64_t pieces = (elements_ + kPiece - 1) / kPiece;
    parallel_tasks(threads_, rows_ * pieces, 8 * rows_ * elements_, [&](std::int64_t task, int) {
      const std::int64_t n = task / pieces;
      const std::int64_t first = task % pieces * kPiece;
      const Random random(seed_, name_, static_cast<std::uint64_t>(call.step),
                          static_cast<std::uint64_t>(call.samples[static_cast<std::size_t>(n)]));
      for (std::int64_t i = first; i < std::min(elements_, first + kPiece); ++i) {
        const bool keep = random.uniform(static_cast<std::uint64_t>(i)) >= probability_;
        to[n * elements_ + i] = keep ? from[n * elements_ + i] * scale : 0.0F;
      }
    });
  }

  int threads_;
  std::int64_t rows_, elements_;
  double probability_;
  std::uint64_t seed_, name_;
  bool training_;
};

}  // namespace

std::unique_ptr<OpKernel> make_dropout(const Site& site) { return std::make_unique<Dropout>(site); }

}  // namespace millrace::kernels::onednn
