// The loops of weight updates: vectorised for the processor at hand, shared by the threads of OpenMP.
#pragma once

#include <cstdint>

namespace millrace::runtime {

/// Coefficients of one step of SGD: g' = scale·g + decay·w; v = momentum·v + g'; w −= rate·v, or with Nesterov's
/// rate·(g' + momentum·v).
template <class Real>
struct SgdStep {
  Real rate, scale, decay, momentum;
  bool nesterov;
};

/// Coefficients of one step of Adam: g' = scale·g + decay·w; m = β₁·m + (1 − β₁)·g'; s = β₂·s + (1 − β₂)·g'²;
/// w = shrink·w − rate·m / (√s·root_correction + ε).
template <class Real>
struct AdamStep {
  Real rate, scale, decay, shrink, beta1, beta2, epsilon, root_correction;
};

// Real is float or double. Every element is computed alike, wherever it lies and whichever thread takes it.

template <class Real>
void plain_sgd_loop(Real* weight, const Real* gradient, std::int64_t n, const SgdStep<Real>& step);
template <class Real>
void sgd_loop(Real* weight, const Real* gradient, Real* velocity, std::int64_t n, const SgdStep<Real>& step);
template <class Real>
void adam_loop(Real* weight, const Real* gradient, Real* first, Real* second, std::int64_t n,
               const AdamStep<Real>& step);

/// Σ v² in double. The order of additions depends on n alone, not on the number of threads.
template <class Real>
double sum_of_squares(const Real* values, std::int64_t n);

}  // namespace millrace::runtime
