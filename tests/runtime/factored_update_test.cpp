// Updates part by part against one update with the whole gradient.
#include "runtime/factored_update.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "kernels/factored_products.h"
#include "models/registry.h"

namespace millrace::runtime {
namespace {

using kernels::Precision;
using kernels::StageParameters;

// 2100 inputs of linear0 and 600 outputs: three parts of its weight.
constexpr std::int64_t kRows = 6;

template <class Real>
class FactoredUpdates : public ::testing::Test {
 protected:
  static constexpr Precision kPrecision = sizeof(Real) == 8 ? Precision::fp64 : Precision::fp32;

  FactoredUpdates() {
    for (StageParameters* one : {&factored, &whole}) one->initialize(3);
    std::vector<Real> x(static_cast<std::size_t>(kRows * shape.inputs)),
        dy(static_cast<std::size_t>(kRows * shape.outputs));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<Real>(std::sin(static_cast<double>(i)));
    for (std::size_t i = 0; i < dy.size(); ++i) dy[i] = static_cast<Real>(std::cos(static_cast<double>(i)));
    kernels::keep_factors(x.data(), dy.data(), shape, kRows, factors());
  }

  Real* factors() { return static_cast<Real*>(factored.gradient_range(0)); }
  Real* value(StageParameters& parameters) { return static_cast<Real*>(parameters.value_range(0)); }

  const Graph graph = models::make("mlp", {{"inputs", "2100"}, {"hidden", "[600]"}, {"classes", "3"}});
  const StageGraph stage = [this] {
    std::vector<OpId> ops(static_cast<std::size_t>(graph.size()));
    std::iota(ops.begin(), ops.end(), 0);
    return make_stage_graph(graph, ops);
  }();
  const FactoredShape shape{kRows, 2100, 600};
  const std::vector<FactoredShape> kept{shape, {}, {}, {}};
  StageParameters factored{stage, graph.parameters(), kPrecision, kernels::Storage::real,
                           gradient_places(stage, graph.parameters(), kept)};
  StageParameters whole{stage, graph.parameters(), kPrecision};
  const OptimizerOptions options{.momentum = 0.9, .weight_decay = 0.01};
  Optimizer in_parts{graph, factored, options};
  Optimizer at_once{graph, whole, options};
  const UpdateScalars scalars{.learning_rate = 0.1};
};

using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(FactoredUpdates, Reals);

TYPED_TEST(FactoredUpdates, GiveTheBitsOfOneUpdate) {
  ASSERT_GT(this->shape.outputs, 2 * this->shape.outputs_of_part());
  for (int step = 0; step < 2; ++step) {
    auto* const gradient = static_cast<TypeParam*>(this->whole.gradient_range(0));
    kernels::factored_product(this->factors(), this->shape, 0, this->shape.outputs, gradient);
    this->at_once.update(0, 1, this->scalars);
    const FactoredUpdate done = update_factored(this->factored, 0, this->in_parts, this->scalars);
    EXPECT_TRUE(done.finite);
    const double squares = std::inner_product(gradient, gradient + this->whole.elements(this->graph.parameters()[0]),
                                              gradient, 0.0, std::plus<>(), [](double a, double b) { return a * b; });
    EXPECT_NEAR(done.squares, squares, 1e-9 * squares);
  }
  const std::int64_t elements = this->whole.range_elements(0, 4);
  EXPECT_TRUE(std::equal(this->value(this->whole), this->value(this->whole) + elements, this->value(this->factored)));
}

TYPED_TEST(FactoredUpdates, LeaveAPartThatIsNotFiniteAsItWas) {
  const std::int64_t inputs = this->shape.inputs, part = this->shape.outputs_of_part() * inputs;
  const std::vector<TypeParam> before(this->value(this->factored),
                                      this->value(this->factored) + inputs * this->shape.outputs);
  this->factors()[inputs + this->shape.outputs_of_part()] = std::numeric_limits<TypeParam>::infinity();
  const FactoredUpdate done = update_factored(this->factored, 0, this->in_parts, this->scalars);
  EXPECT_FALSE(done.finite);
  EXPECT_TRUE(std::isfinite(done.squares));
  for (std::size_t i = 0; i < before.size(); ++i) {
    const bool is_left = static_cast<std::int64_t>(i) / part == 1;
    ASSERT_EQ(this->value(this->factored)[i] == before[i], is_left) << i;
  }
}

TYPED_TEST(FactoredUpdates, EmptyRowsForTheNextStep) {
  this->factored.discard_gradients(0, 1);
  this->factored.combine_uses(0, 1);
  EXPECT_EQ(std::count(this->factors(), this->factors() + this->shape.elements(), TypeParam{0}),
            this->shape.elements());
  EXPECT_EQ(this->factored.gradient_elements(0, 1), this->shape.elements());
  EXPECT_EQ(this->factored.gradient_elements(0, 2), this->shape.elements() + this->shape.outputs);
}

}  // namespace
}  // namespace millrace::runtime
