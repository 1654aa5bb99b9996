// Sizes of the products, their names, and the race between the ways to make them.
#include "kernels/onednn/matrix_product.h"

#include <algorithm>
#include <bit>
#include <vector>

#include <fmt/format.h>

#include "kernels/arena.h"
#include "kernels/onednn/race.h"

namespace millrace::kernels::onednn {
namespace {

constexpr std::uint64_t kEnoughRows = 128;  // at least, if there are so many: fewer wait for the weights
constexpr double kProductGain = 1.05;       // what noise does not feign; both ways round alike
constexpr const char* kSgemm = "sgemm";
constexpr const char* kMatmul = "matmul";

/// A product on matrices of its own, all zeros: values do not change its time.
class LoneProduct {
 public:
  explicit LoneProduct(const Gemm& shape)
      : shape_(shape), a_(shape.m * shape.k * kFloat), b_(shape.k * shape.n * kFloat), c_(shape.m * shape.n * kFloat) {}

  /// By sgemm, and by the primitive.
  std::vector<Contender> contenders(const Engine& engine) {
    MatmulPrimitive made = make_matmul(engine, shape_);
    primitive_ = std::move(made.primitive);
    scratch_ = Block(made.scratch);
    bind_matmul(primitive_, at(a_), at(b_), at(c_), scratch_.at(0));
    return {{kSgemm, [this] { gemm(shape_, at(a_), at(b_), at(c_)); }}, {kMatmul, [this] { primitive_.execute(); }}};
  }

 private:
  static constexpr std::int64_t kFloat = sizeof(float);
  static float* at(const Block& block) { return reinterpret_cast<float*>(block.at(0)); }

  Gemm shape_;
  Block a_, b_, c_, scratch_{0};
  Primitive primitive_;
};

}  // namespace

Gemm overwriting(Gemm shape) {
  shape.beta = 0;
  return shape;
}

Gemm linear_product(Pass pass, const LinearShape& shape) {
  const auto [m, k, o, bias] = shape;
  if (pass == Pass::forward) {
    return {.transpose_b = true, .m = m, .n = o, .k = k, .lda = k, .ldb = k, .ldc = o, .beta = bias ? 1.0F : 0.0F};
  }
  if (pass == Pass::backward_data) return {.m = m, .n = k, .k = o, .lda = o, .ldb = k, .ldc = k};
  return {.transpose_a = true, .m = o, .n = k, .k = m, .lda = o, .ldb = k, .ldc = k, .beta = 1.0F};
}

LinearShape measured_shape(LinearShape shape) {
  const double of_a_row = 2.0 * static_cast<double>(shape.inputs) * static_cast<double>(shape.outputs);
  const auto enough = std::max(kEnoughRows, static_cast<std::uint64_t>(kEnoughFlops / of_a_row));
  shape.rows = static_cast<std::int64_t>(std::bit_floor(std::min(static_cast<std::uint64_t>(shape.rows), enough)));
  return shape;
}

bool is_worth_measuring(const LinearShape& measured) {
  return 2.0 * static_cast<double>(measured.rows) * static_cast<double>(measured.inputs) *
             static_cast<double>(measured.outputs) >=
         kLeastFlops;
}

std::string linear_work(Pass pass, const LinearShape& shape) {
  return fmt::format("linear {} {} to {}{} rows {}", words(pass), shape.inputs, shape.outputs,
                     shape.bias && pass == Pass::forward ? " bias" : "", measured_shape(shape).rows);
}

LinearProduct::LinearProduct(const Engine& engine, Pass pass, const LinearShape& shape, Variants* variants)
    : shape_(linear_product(pass, shape)) {
  if (variants == nullptr) return;
  const std::string work = linear_work(pass, shape);
  const VariantChoice* choice = variants->find(work);
  const LinearShape measured = measured_shape(shape);
  if (choice == nullptr && is_worth_measuring(measured)) {
    choice = variants->find_or_measure(work, [&] {
      return choose_fastest(LoneProduct(linear_product(pass, measured)).contenders(engine), kProductGain);
    });
  }
  if (choice == nullptr || choice->variant != kMatmul) return;
  MatmulPrimitive made = make_matmul(engine, shape_);
  primitive_ = std::move(made.primitive);
  scratch_ = made.scratch;
  if (pass != Pass::backward_weights) return;
  made = make_matmul(engine, overwriting(shape_));
  overwriting_ = std::move(made.primitive);
  scratch_ = std::max(scratch_, made.scratch);
}

void LinearProduct::run(const float* a, const float* b, float* c, void* scratch, bool overwrite) {
  if (!primitive_) {
    gemm(overwrite ? overwriting(shape_) : shape_, a, b, c);
    return;
  }
  Primitive& primitive = overwrite ? overwriting_ : primitive_;
  bind_matmul(primitive, a, b, c, scratch);
  primitive.execute();
}

double least_product_seconds(const Engine& engine, const Gemm& shape) {
  LoneProduct product(shape);
  return least_seconds(product.contenders(engine));
}

}  // namespace millrace::kernels::onednn
