// Steps of each optimizer against its formulas, element by element in double.
#include "runtime/optimizer.h"

#include <cmath>
#include <functional>
#include <numeric>

#include <gtest/gtest.h>

#include "tests/mpi/networks.h"

namespace millrace::runtime {
namespace {

using kernels::Precision;

// A network as one stage, with its parameters and buffers in tensor order.
struct WholeNetwork {
  WholeNetwork(const std::string& name, Precision precision)
      : graph(millrace::testing::small_network(name)),
        stage(make_stage_graph(graph, all_ops(graph))),
        order(all_tensors(graph)),
        parameters(stage, order, precision) {
    parameters.initialize(3);
  }

  static std::vector<OpId> all_ops(const Graph& graph) {
    std::vector<OpId> ops(static_cast<std::size_t>(graph.size()));
    std::iota(ops.begin(), ops.end(), 0);
    return ops;
  }
  static std::vector<TensorId> all_tensors(const Graph& graph) {
    std::vector<TensorId> tensors(graph.parameters().begin(), graph.parameters().end());
    tensors.insert(tensors.end(), graph.buffers().begin(), graph.buffers().end());
    return tensors;
  }

  Graph graph;
  StageGraph stage;
  std::vector<TensorId> order;
  kernels::StageParameters parameters;
};

// The gradient of element i at step t: signs and sizes vary, zero among them.
double gradient(std::int64_t i, int t) {
  return 0.3 * std::sin(static_cast<double>(i * 7 + t * 3)) * static_cast<double>(i % 5);
}
double rate(int t) { return 0.1 / t; }

constexpr int kSteps = 5;
constexpr double kScale = 0.5;  // of clipping

// One element through all steps: called with (weight, gradient, learning rate, step from 1).
using Formula = std::function<double(double weight, double gradient, double rate, int step)>;

template <class Real>
double largest_error(const OptimizerOptions& options, const std::function<Formula()>& formula) {
  WholeNetwork net("mlp", sizeof(Real) == 8 ? Precision::fp64 : Precision::fp32);
  const std::size_t count = net.order.size();
  const std::int64_t elements = net.parameters.range_elements(0, count);
  auto* values = static_cast<Real*>(net.parameters.value_range(0));
  auto* gradients = static_cast<Real*>(net.parameters.gradient_range(0));
  const std::vector<Real> start(values, values + elements);

  Optimizer optimizer(net.graph, net.parameters, options);
  for (int t = 1; t <= kSteps; ++t) {
    for (std::int64_t i = 0; i < elements; ++i) gradients[i] = static_cast<Real>(gradient(i, t));
    const UpdateScalars scalars{.learning_rate = rate(t), .gradient_scale = kScale, .step = t};
    // In two ranges, as two buckets would.
    optimizer.update(1, count - 1, scalars);
    optimizer.update(0, 1, scalars);
  }

  double worst = 0;
  for (std::int64_t i = 0; i < elements; ++i) {
    const Formula step = formula();
    double weight = static_cast<double>(start[static_cast<std::size_t>(i)]);
    for (int t = 1; t <= kSteps; ++t) weight = step(weight, kScale * gradient(i, t), rate(t), t);
    worst = std::max(worst, std::abs(weight - static_cast<double>(values[i])));
  }
  return worst;
}

void expect_steps(const OptimizerOptions& options, const std::function<Formula()>& formula) {
  EXPECT_LT(largest_error<double>(options, formula), 1e-13);
  EXPECT_LT(largest_error<float>(options, formula), 2e-6);
}

TEST(Optimizer, Sgd) {
  expect_steps({}, [] { return [](double w, double g, double lr, int) { return w - lr * g; }; });
}

TEST(Optimizer, SgdDecaysWeightsThroughTheGradient) {
  expect_steps({.weight_decay = 0.1},
               [] { return [](double w, double g, double lr, int) { return w - lr * (g + 0.1 * w); }; });
}

TEST(Optimizer, SgdWithMomentum) {
  expect_steps({.momentum = 0.9, .weight_decay = 0.01}, [] {
    return [v = 0.0](double w, double g, double lr, int) mutable {
      v = 0.9 * v + (g + 0.01 * w);
      return w - lr * v;
    };
  });
}

TEST(Optimizer, SgdWithNesterovMomentumLooksAhead) {
  expect_steps({.momentum = 0.8, .nesterov = true}, [] {
    return [v = 0.0](double w, double g, double lr, int) mutable {
      v = 0.8 * v + g;
      return w - lr * (g + 0.8 * v);
    };
  });
}

// Kingma and Ba (arXiv 1412.6980), algorithm 1.
Formula adam_formula(double decay_of_gradient, double decay_of_weight) {
  return [m = 0.0, v = 0.0, decay_of_gradient, decay_of_weight](double w, double g, double lr, int t) mutable {
    g += decay_of_gradient * w;
    w -= lr * decay_of_weight * w;
    m = 0.8 * m + 0.2 * g;
    v = 0.95 * v + 0.05 * g * g;
    return w - lr * (m / (1 - std::pow(0.8, t))) / (std::sqrt(v / (1 - std::pow(0.95, t))) + 1e-3);
  };
}

TEST(Optimizer, AdamDecaysThroughTheGradient) {
  const OptimizerOptions options{
      .kind = OptimizerKind::adam, .weight_decay = 0.1, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3};
  expect_steps(options, [] { return adam_formula(0.1, 0); });
}

// Loshchilov and Hutter (arXiv 1711.05101): the decay does not pass the moments.
TEST(Optimizer, AdamWDecaysTheWeightItself) {
  const OptimizerOptions options{
      .kind = OptimizerKind::adamw, .weight_decay = 0.1, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3};
  expect_steps(options, [] { return adam_formula(0, 0.1); });
}

TEST(Optimizer, BuffersTakeTheirRunningMeanWhateverTheOptimizer) {
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adam, OptimizerKind::adamw}) {
    WholeNetwork net("resnet", Precision::fp64);
    const std::size_t first = net.graph.parameters().size(), count = net.graph.buffers().size();
    ASSERT_GT(count, 0U);
    const std::int64_t elements = net.parameters.range_elements(first, count);
    auto* values = static_cast<double*>(net.parameters.value_range(first));
    auto* deposits = static_cast<double*>(net.parameters.gradient_range(first));
    std::fill_n(values, elements, 2.0);
    std::fill_n(deposits, elements, 5.0);
    Optimizer optimizer(net.graph, net.parameters, {.kind = kind, .momentum = 0.9, .weight_decay = 0.1});
    optimizer.update(first, count, {.learning_rate = 100, .gradient_scale = 1e-3, .step = 1});
    for (std::int64_t i = 0; i < elements; ++i) ASSERT_DOUBLE_EQ(values[i], 0.9 * 2 + 0.1 * 5);
  }
}

TEST(Optimizer, UpdatesItsRangeAlone) {
  WholeNetwork net("mlp", Precision::fp64);
  const std::size_t count = net.order.size();
  const std::int64_t elements = net.parameters.range_elements(0, count);
  auto* values = static_cast<double*>(net.parameters.value_range(0));
  std::fill_n(static_cast<double*>(net.parameters.gradient_range(0)), elements, 1.0);
  const std::vector<double> before(values, values + elements);
  Optimizer(net.graph, net.parameters, {}).update(2, 1, {.learning_rate = 0.5});
  const std::int64_t first = net.parameters.range_elements(0, 2), last = net.parameters.range_elements(0, 3);
  for (std::int64_t i = 0; i < elements; ++i) {
    const double moved = i >= first && i < last ? 0.5 : 0.0;
    ASSERT_EQ(values[i], before[static_cast<std::size_t>(i)] - moved) << i;
  }
}

// What is kept in parts is updated as where it is whole; the rest stays as it was, and no state is kept of it.
TEST(Optimizer, UpdatesWhatItKeeps) {
  WholeNetwork whole("resnet", Precision::fp64), part("resnet", Precision::fp64);  // has buffers
  const std::size_t count = whole.order.size();
  const std::int64_t elements = whole.parameters.range_elements(0, count);
  const ElementRange kept{elements / 3, elements - 7};
  const OptimizerOptions options{.kind = OptimizerKind::adamw, .weight_decay = 0.1};
  Optimizer all(whole.graph, whole.parameters, options), some(part.graph, part.parameters, options, {{kept}});
  EXPECT_EQ(all.state_bytes(), 2 * 8 * elements);
  EXPECT_EQ(some.state_bytes(), 2 * 8 * kept.size());
  auto* const values = static_cast<double*>(part.parameters.value_range(0));
  auto* const expected = static_cast<double*>(whole.parameters.value_range(0));
  const std::vector<double> before(values, values + elements);
  for (int t = 1; t <= 3; ++t) {
    for (auto* net : {&whole, &part}) {
      for (std::int64_t i = 0; i < elements; ++i) {
        static_cast<double*>(net->parameters.gradient_range(0))[i] = gradient(i, t);
      }
    }
    const UpdateScalars scalars{.learning_rate = rate(t), .step = t};
    all.update(0, count, scalars);
    some.update(0, 2, scalars);
    some.update(2, count - 2, scalars);
  }
  for (std::int64_t i = 0; i < elements; ++i) {
    const bool is_kept = i >= kept.begin && i < kept.end;
    ASSERT_EQ(values[i], is_kept ? expected[i] : before[static_cast<std::size_t>(i)]) << i;
  }
}

TEST(Optimizer, StateIsWhatTheMemoryModelCounts) {
  WholeNetwork net("mlp", Precision::fp32);
  const std::int64_t weights = net.parameters.value_bytes();
  EXPECT_EQ(Optimizer(net.graph, net.parameters, {}).state_bytes(), 0);
  EXPECT_EQ(Optimizer(net.graph, net.parameters, {.momentum = 0.9}).state_bytes(), weights);
  EXPECT_EQ(Optimizer(net.graph, net.parameters, {.kind = OptimizerKind::adamw}).state_bytes(), 2 * weights);
}

}  // namespace
}  // namespace millrace::runtime
