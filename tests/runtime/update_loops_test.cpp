// Update loops: every element alike wherever it lies and however many threads share them; sums against long doubles.
#include "runtime/update_loops.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>
#include <omp.h>

#include "base/random.h"

namespace millrace::runtime {
namespace {

constexpr std::int64_t kCount = 140'003;  // shared by threads, and no whole number of vectors
#if defined(__SANITIZE_THREAD__)
constexpr int kTeam = 1;  // ThreadSanitizer does not know libgomp's barriers
#else
constexpr int kTeam = 2;
#endif

template <class Real>
std::vector<Real> random_reals(const std::string& name, double low, double high) {
  const Random random(3, name);
  std::vector<Real> values(static_cast<std::size_t>(kCount));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<Real>(low + (high - low) * random.uniform(i));
  return values;
}

/// Weights, gradients and two states.
template <class Real>
struct Tensor {
  std::vector<Real> w = random_reals<Real>("w", -1, 1), g = random_reals<Real>("g", -2, 2);
  std::vector<Real> m = random_reals<Real>("m", -1, 1), v = random_reals<Real>("v", 0, 1);
};

template <class Real>
class UpdateLoops : public ::testing::Test {
 protected:
  /// `loop(tensor, begin, count)` on all elements by a team of threads, and one by one on some of them.
  template <class Loop>
  void expect_alike(Loop loop) {
    Tensor<Real> whole, single;
    const int threads = omp_get_max_threads();
    omp_set_num_threads(kTeam);
    loop(whole, 0, kCount);
    omp_set_num_threads(threads);
    for (std::int64_t i = 0; i < kCount; i += i < 100 || i > kCount - 100 ? 1 : 997) {
      loop(single, i, 1);
      const auto at = static_cast<std::size_t>(i);
      EXPECT_EQ(whole.w[at], single.w[at]) << i;
      EXPECT_EQ(whole.m[at], single.m[at]) << i;
      EXPECT_EQ(whole.v[at], single.v[at]) << i;
    }
    // Few: what is left of whole vectors is taken by shorter ones.
    Tensor<Real> start;
    for (auto* values : {&start.w, &start.g, &start.m, &start.v}) values->resize(100);
    for (std::int64_t n = 2; n < 70; ++n) {
      Tensor<Real> few = start;
      loop(few, 3, n);
      for (std::int64_t i = 3; i < 3 + n; ++i) {
        EXPECT_EQ(whole.w[static_cast<std::size_t>(i)], few.w[static_cast<std::size_t>(i)]) << i << " of " << n;
      }
    }
  }
};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(UpdateLoops, Reals);

TYPED_TEST(UpdateLoops, SgdTakesEveryElementAlike) {
  for (const bool nesterov : {false, true}) {
    const SgdStep<TypeParam> step{TypeParam(0.1), TypeParam(0.5), TypeParam(0.01), TypeParam(0.9), nesterov};
    this->expect_alike([&](Tensor<TypeParam>& t, std::int64_t i, std::int64_t n) {
      sgd_loop(t.w.data() + i, t.g.data() + i, t.m.data() + i, n, step);
      plain_sgd_loop(t.v.data() + i, t.g.data() + i, n, step);
    });
  }
}

TYPED_TEST(UpdateLoops, AdamTakesEveryElementAlikeAndFollowsItsFormula) {
  const AdamStep<TypeParam> step{TypeParam(1e-3), TypeParam(0.5),   TypeParam(0.01), TypeParam(0.99),
                                 TypeParam(0.9),  TypeParam(0.999), TypeParam(1e-8), TypeParam(1.5)};
  const auto loop = [&](Tensor<TypeParam>& t, std::int64_t i, std::int64_t n) {
    adam_loop(t.w.data() + i, t.g.data() + i, t.m.data() + i, t.v.data() + i, n, step);
  };
  this->expect_alike(loop);
  const Tensor<TypeParam> before;
  Tensor<TypeParam> after;
  loop(after, 0, kCount);
  for (std::size_t i = 0; i < static_cast<std::size_t>(kCount); i += 1009) {
    const double g = 0.5 * before.g[i] + 0.01 * before.w[i];
    const double m = 0.9 * before.m[i] + 0.1 * g, v = 0.999 * before.v[i] + 0.001 * g * g;
    EXPECT_NEAR(after.m[i], m, 1e-6);
    EXPECT_NEAR(after.v[i], v, 1e-6);
    EXPECT_NEAR(after.w[i], 0.99 * before.w[i] - 1e-3 * m / (1.5 * std::sqrt(v) + 1e-8), 1e-6);
  }
}

TYPED_TEST(UpdateLoops, SumsOfSquaresDoNotDependOnThreads) {
  const Tensor<TypeParam> t;
  for (const std::int64_t n : {std::int64_t{0}, std::int64_t{5}, std::int64_t{33}, kCount}) {
    long double exact = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const auto value = static_cast<long double>(t.g[static_cast<std::size_t>(i)]);
      exact += value * value;
    }
    const int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    const double one = sum_of_squares(t.g.data(), n);
    omp_set_num_threads(kTeam);
    EXPECT_EQ(sum_of_squares(t.g.data(), n), one);
    omp_set_num_threads(threads);
    EXPECT_NEAR(one, static_cast<double>(exact), 1e-12 * static_cast<double>(exact));
  }
}

}  // namespace
}  // namespace millrace::runtime
