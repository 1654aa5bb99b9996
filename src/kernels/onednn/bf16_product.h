// The products of a linear layer on tensors that lie in bf16, without fp32 copies of them.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/onednn/matrix_product.h"

namespace millrace::kernels::onednn {

/// One of the products of linear_product, by a primitive: tensors between operators are bf16, sums are fp32, and each
/// element of a result in bf16 is rounded once. The weight is fp32, rounded into scratch for the call; so is its
/// gradient, which is added to.
class Bf16Product {
 public:
  Bf16Product() = default;
  Bf16Product(const Engine& engine, Pass pass, const LinearShape& shape, int threads);

  /// Whether the processor has such a product.
  explicit operator bool() const { return static_cast<bool>(primitive_); }
  std::int64_t scratch_bytes() const { return weight_bytes_ + scratch_; }
  /// Operands in the order of linear_product. `bias`: of a forward that has one.
  void run(const void* a, const void* b, void* c, const float* bias, void* scratch);

 private:
  Primitive primitive_;
  bool bias_ = false;
  std::int64_t scratch_ = 0;
  std::int64_t weight_ = 0;        // elements, where the second operand is the weight
  std::int64_t weight_bytes_ = 0;  // of its copy
  int threads_ = 1;                // that round it
};

/// The product's name in a table of variants; rows as in linear_work.
std::string bf16_linear_work(Pass pass, const LinearShape& shape);

/// The product, if `variants`, which may be null, knows it to be faster than fp32 copies of its operands and the
/// fastest product of these; work that is large enough is measured. Else none.
Bf16Product choose_bf16_product(const Engine& engine, Pass pass, const LinearShape& shape, int threads,
                                Variants* variants);

}  // namespace millrace::kernels::onednn
