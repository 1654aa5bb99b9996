// Column blocks of a part, each of which adds up its rows four at a time.
#include "kernels/factored_products.h"

#include "kernels/onednn/vector_clones.h"

namespace millrace::kernels {
namespace {

constexpr std::int64_t kProductColumns = 512;    // of x, whose rows then stay in the first cache
constexpr std::int64_t kWorthSharing = 1 << 15;  // products for which another thread is woken

template <class Real>
struct Columns {
  const Real* x;   // of the first row
  const Real* dy;  // of the first row and output
  std::int64_t rows, width, outputs;
  Real* to;
  std::int64_t pitch, count;
};

template <class Real>
MILLRACE_INLINE void columns_body(const Columns<Real>& given) {
  const Columns<Real> c = given;
  for (std::int64_t o = 0; o < c.outputs; ++o) {
    Real* const to = c.to + o * c.pitch;
    const Real* x = c.x;
    const Real* dy = c.dy + o;
    for (std::int64_t i = 0; i < c.count; ++i) to[i] = 0;
    std::int64_t r = 0;
    for (; r + 4 <= c.rows; r += 4, x += 4 * c.width, dy += 4 * c.width) {
      const Real d0 = dy[0], d1 = dy[c.width], d2 = dy[2 * c.width], d3 = dy[3 * c.width];
      const Real *x1 = x + c.width, *x2 = x + 2 * c.width, *x3 = x + 3 * c.width;
      for (std::int64_t i = 0; i < c.count; ++i) {
        Real sum = to[i];
        sum += d0 * x[i];
        sum += d1 * x1[i];
        sum += d2 * x2[i];
        sum += d3 * x3[i];
        to[i] = sum;
      }
    }
    for (; r < c.rows; ++r, x += c.width, dy += c.width) {
      const Real d = dy[0];
      for (std::int64_t i = 0; i < c.count; ++i) to[i] += d * x[i];
    }
  }
}

// A name each, since clones cannot be overloads or templates.
MILLRACE_VECTOR_CLONES void columns_of_product(const Columns<float>& c) { columns_body(c); }
MILLRACE_VECTOR_CLONES void columns_of_product_64(const Columns<double>& c) { columns_body(c); }

template <class Real, class F>
void each_block(const Real* factors, const FactoredShape& shape, std::int64_t first, std::int64_t count, Real* part,
                F&& block) {
#pragma omp parallel for schedule(static) if (shape.rows * count * shape.inputs >= kWorthSharing)
  for (std::int64_t i = 0; i < shape.inputs; i += kProductColumns) {
    block({.x = factors + i,
           .dy = factors + shape.inputs + first,
           .rows = shape.rows,
           .width = shape.width(),
           .outputs = count,
           .to = part + i,
           .pitch = shape.inputs,
           .count = std::min(kProductColumns, shape.inputs - i)});
  }
}

}  // namespace

template <>
void factored_product(const float* factors, const FactoredShape& shape, std::int64_t first, std::int64_t count,
                      float* part) {
  each_block(factors, shape, first, count, part, [](const Columns<float>& c) { columns_of_product(c); });
}

template <>
void factored_product(const double* factors, const FactoredShape& shape, std::int64_t first, std::int64_t count,
                      double* part) {
  each_block(factors, shape, first, count, part, [](const Columns<double>& c) { columns_of_product_64(c); });
}

}  // namespace millrace::kernels
