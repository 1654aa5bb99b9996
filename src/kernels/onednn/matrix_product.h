// Products of matrices that a kernel makes again and again: by sgemm, or by a primitive where it was measured faster.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/onednn/dnnl_api.h"
#include "kernels/variants.h"

namespace millrace::kernels::onednn {

/// The three products of a linear layer, y = x · Wᵀ (added to the bias where there is one), dx = dy · W and
/// dW += dyᵀ · x, each with its operands in this order.
struct LinearShape {
  std::int64_t rows = 0, inputs = 0, outputs = 0;
  bool bias = false;
};
Gemm linear_product(Pass pass, const LinearShape& shape);
/// The product not added to what is there.
Gemm overwriting(Gemm shape);

/// Its name in a table of variants. The choice for some rows holds for all numbers of rows that have the same name: it
/// is measured on the largest power of two up to them, or up to what is enough work to be measured.
std::string linear_work(Pass pass, const LinearShape& shape);

/// The layer on those rows, and whether they are enough work to be measured.
LinearShape measured_shape(LinearShape shape);
bool is_worth_measuring(const LinearShape& measured);

/// One of them, by what `variants`, which may be null, knows; work that is large enough is measured.
class LinearProduct {
 public:
  LinearProduct() = default;
  LinearProduct(const Engine& engine, Pass pass, const LinearShape& shape, Variants* variants);

  std::int64_t scratch_bytes() const { return scratch_; }
  /// \param overwrite  a product that is added to c overwrites it this time
  void run(const float* a, const float* b, float* c, void* scratch, bool overwrite = false);

 private:
  Gemm shape_;
  Primitive primitive_;    // none: sgemm
  Primitive overwriting_;  // the same, of a product that is added
  std::int64_t scratch_ = 0;
};

/// Processor time of a product alone, by the fastest way.
double least_product_seconds(const Engine& engine, const Gemm& shape);

}  // namespace millrace::kernels::onednn
