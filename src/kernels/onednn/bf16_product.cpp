// The primitives of the products, and the race of each against copies.
#include "kernels/onednn/bf16_product.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/arena.h"
#include "kernels/bf16/copies.h"
#include "kernels/onednn/race.h"

namespace millrace::kernels::onednn {
namespace {

constexpr double kNativeGain = 1.1;  // copies differ more from run to run than products do
constexpr const char* kConverted = "converted";
constexpr const char* kNative = "native";
constexpr std::int64_t kBf16Bytes = sizeof(Bf16);
constexpr std::int64_t kFp32Size = sizeof(float);

/// A product on matrices of its own, all zeros, both ways. Of a weight both round a copy.
class LoneBf16Product {
 public:
  LoneBf16Product(const Engine& engine, Pass pass, const LinearShape& shape, int threads, Variants* variants)
      : shape_(linear_product(pass, shape)),
        weights_(pass != Pass::backward_weights),
        copies_(threads),
        converted_(engine, pass, shape, variants),
        native_(engine, pass, shape, threads),
        a_(shape_.m * shape_.k * kBf16Bytes),
        b_(shape_.k * shape_.n * kFp32Size),
        c_(shape_.m * shape_.n * kFp32Size),
        bias_(shape_.n * kFp32Size),
        a_copy_(shape_.m * shape_.k * kFp32Size),
        b_copy_(shape_.k * shape_.n * kFp32Size),
        c_copy_(shape_.m * shape_.n * kFp32Size),
        scratch_(std::max(converted_.scratch_bytes(), native_.scratch_bytes())) {}

  std::vector<Contender> contenders() {
    return {{kConverted, [this] { convert(); }},
            {kNative, [this] { native_.run(a_.at(0), b_.at(0), c_.at(0), numbers(bias_), scratch_.at(0)); }}};
  }

 private:
  static float* numbers(const Block& block) { return reinterpret_cast<float*>(block.at(0)); }

  void convert() {
    copies_.widen(a_.at(0), a_copy_.at(0), shape_.m * shape_.k);
    if (weights_) {
      copies_.round(b_.at(0), b_copy_.at(0), shape_.k * shape_.n);
    } else {
      copies_.widen(b_.at(0), b_copy_.at(0), shape_.k * shape_.n);
    }
    const Block& result = weights_ ? c_copy_ : c_;
    converted_.run(numbers(a_copy_), numbers(b_copy_), numbers(result), scratch_.at(0));
    if (weights_) copies_.narrow(c_copy_.at(0), c_.at(0), shape_.m * shape_.n);
  }

  Gemm shape_;
  bool weights_;  // the second operand is the weight
  Bf16Copies copies_;
  LinearProduct converted_;
  Bf16Product native_;
  Block a_, b_, c_, bias_, a_copy_, b_copy_, c_copy_, scratch_;
};

}  // namespace

Bf16Product::Bf16Product(const Engine& engine, Pass pass, const LinearShape& shape, int threads)
    : bias_(pass == Pass::forward && shape.bias), threads_(threads) {
  const bool reads_weight = pass != Pass::backward_weights;
  Gemm product = linear_product(pass, shape);
  if (reads_weight) product.beta = 0;  // the primitive adds the bias itself
  std::optional<MatmulPrimitive> made = make_bf16_matmul(engine, product, reads_weight, bias_);
  if (!made) return;
  primitive_ = std::move(made->primitive);
  scratch_ = made->scratch;
  if (reads_weight) weight_ = product.k * product.n;
  weight_bytes_ = aligned(weight_ * kBf16Bytes);
}

void Bf16Product::run(const void* a, const void* b, void* c, const float* bias, void* scratch) {
  std::byte* const place = static_cast<std::byte*>(scratch);
  if (weight_ > 0) Bf16Copies(threads_).narrow(b, place, weight_);
  bind_matmul(primitive_, a, weight_ > 0 ? place : b, c, place + weight_bytes_);
  if (bias_) primitive_.bind(kBiasPosition, bias);
  primitive_.execute();
}

std::string bf16_linear_work(Pass pass, const LinearShape& shape) { return "bf16 " + linear_work(pass, shape); }

Bf16Product choose_bf16_product(const Engine& engine, Pass pass, const LinearShape& shape, int threads,
                                Variants* variants) {
  if (variants == nullptr) return {};
  const std::string work = bf16_linear_work(pass, shape);
  const VariantChoice* choice = variants->find(work);
  if (choice != nullptr && choice->variant != kNative) return {};
  const LinearShape measured = measured_shape(shape);
  if (choice == nullptr && !is_worth_measuring(measured)) return {};
  Bf16Product native(engine, pass, shape, threads);
  if (!native) return {};
  if (choice == nullptr) {
    LoneBf16Product lone(engine, pass, measured, threads, variants);
    choice = variants->find_or_measure(work, [&] { return choose_fastest(lone.contenders(), kNativeGain); });
  }
  return choice != nullptr && choice->variant == kNative ? std::move(native) : Bf16Product();
}

}  // namespace millrace::kernels::onednn
