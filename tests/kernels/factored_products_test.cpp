// Gradients of a linear layer made from their factors.
#include "kernels/factored_products.h"

#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace millrace::kernels::testing {
namespace {

template <class Real>
std::vector<Real> random_values(std::int64_t count, const char* name) {
  const Random random(3, name);
  std::vector<Real> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<Real>(random.normal(i));
  return values;
}

template <class Real>
class FactoredProducts : public ::testing::Test {
 protected:
  const FactoredShape shape{.rows = 7, .inputs = 1037, .outputs = 13};  // no multiples of any block
  const std::vector<Real> x = random_values<Real>(shape.rows * shape.inputs, "x");
  const std::vector<Real> dy = random_values<Real>(shape.rows * shape.outputs, "dy");

  std::vector<Real> made(const std::vector<Real>& factors, const FactoredShape& of, std::int64_t first,
                         std::int64_t count) const {
    std::vector<Real> part(static_cast<std::size_t>(count * of.inputs));
    factored_product(factors.data(), of, first, count, part.data());
    return part;
  }
  std::vector<Real> kept(std::int64_t before, std::int64_t after) const {
    std::vector<Real> rows(static_cast<std::size_t>((before + shape.rows + after) * shape.width()));
    keep_factors(x.data(), dy.data(), shape, shape.rows, rows.data() + before * shape.width());
    return rows;
  }
};

using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(FactoredProducts, Reals);

TYPED_TEST(FactoredProducts, AreTheSumOverRows) {
  const auto whole = this->made(this->kept(0, 0), this->shape, 0, this->shape.outputs);
  const double limit = sizeof(TypeParam) == 4 ? 1e-5 : 1e-13;
  for (std::int64_t o = 0; o < this->shape.outputs; ++o) {
    for (std::int64_t i = 0; i < this->shape.inputs; ++i) {
      double sum = 0;
      for (std::int64_t r = 0; r < this->shape.rows; ++r) {
        sum += static_cast<double>(this->dy[static_cast<std::size_t>(r * this->shape.outputs + o)]) *
               static_cast<double>(this->x[static_cast<std::size_t>(r * this->shape.inputs + i)]);
      }
      ASSERT_NEAR(whole[static_cast<std::size_t>(o * this->shape.inputs + i)], sum, limit) << o << ", " << i;
    }
  }
}

TYPED_TEST(FactoredProducts, DoNotDependOnTheParts) {
  const auto factors = this->kept(0, 0);
  const auto whole = this->made(factors, this->shape, 0, this->shape.outputs);
  std::vector<TypeParam> joined;
  for (std::int64_t first = 0; first < this->shape.outputs; first += 5) {
    const auto part = this->made(factors, this->shape, first, std::min<std::int64_t>(5, this->shape.outputs - first));
    joined.insert(joined.end(), part.begin(), part.end());
  }
  EXPECT_EQ(whole, joined);
}

// Those of other ranks before they are there, and of padding.
TYPED_TEST(FactoredProducts, RowsOfZerosAddNothing) {
  FactoredShape padded = this->shape;
  padded.rows += 5;
  EXPECT_EQ(this->made(this->kept(2, 3), padded, 0, padded.outputs),
            this->made(this->kept(0, 0), this->shape, 0, this->shape.outputs));
}

TEST(FactoredShape, PartsFitIntoACacheAndHaveARow) {
  EXPECT_EQ((FactoredShape{8, 25088, 4096}).outputs_of_part(), 20);
  EXPECT_EQ((FactoredShape{8, 1 << 20, 4096}).outputs_of_part(), 1);
  EXPECT_EQ((FactoredShape{8, 16, 8}).part_elements(), 16 * 8);
}

}  // namespace
}  // namespace millrace::kernels::testing
