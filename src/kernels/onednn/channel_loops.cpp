// Leaf loops in steps of one vector of lanes. Their sums are local arrays of constant length, which stay in registers.
#include "kernels/onednn/channel_loops.h"

#include "kernels/onednn/vector_clones.h"

namespace millrace::kernels::onednn {
namespace {

MILLRACE_INLINE void take_lanes(const Lanes& from, float* to) {
  for (std::int64_t l = 0; l < kRunLanes; ++l) to[l] = from[static_cast<std::size_t>(l)];
}
MILLRACE_INLINE void give_lanes(const float* from, Lanes& to) {
  for (std::int64_t l = 0; l < kRunLanes; ++l) to[static_cast<std::size_t>(l)] = from[l];
}

// step(first element, lanes) for each vector of lanes; the last may have fewer.
template <class Step>
MILLRACE_INLINE void each_vector(std::int64_t n, Step step) {
  std::int64_t i = 0;
  for (; i + kRunLanes <= n; i += kRunLanes) step(i, kRunLanes);
  if (i < n) step(i, n - i);
}

MILLRACE_VECTOR_CLONES void moments_loop(const float* x, std::int64_t n, const Lanes& about, Lanes& sum,
                                         Lanes& squares) {
  float m[kRunLanes];
  float s[kRunLanes] = {};
  float q[kRunLanes] = {};
  take_lanes(about, m);
  each_vector(
      n, [&](std::int64_t i, std::int64_t lanes) __attribute__((always_inline)) {
#pragma omp simd
        for (std::int64_t l = 0; l < lanes; ++l) {
          const float d = x[i + l] - m[l];
          s[l] += d;
          q[l] += d * d;
        }
      });
  give_lanes(s, sum);
  give_lanes(q, squares);
}

// value(x · scale + shift, element)
template <class Value>
MILLRACE_INLINE void normalise_body(const float* x, std::int64_t n, const RunScale& by, float* y, Value value) {
  float a[kRunLanes];
  float b[kRunLanes];
  take_lanes(by.scale, a);
  take_lanes(by.shift, b);
  each_vector(
      n, [&](std::int64_t i, std::int64_t lanes) __attribute__((always_inline)) {
#pragma omp simd
        for (std::int64_t l = 0; l < lanes; ++l) y[i + l] = value(x[i + l] * a[l] + b[l], i + l);
      });
}
MILLRACE_VECTOR_CLONES void normalise_loop(const float* x, std::int64_t n, const RunScale& by, float* y) {
  normalise_body(
      x, n, by, y, [](float value, std::int64_t) __attribute__((always_inline)) { return value; });
}
MILLRACE_VECTOR_CLONES void normalise_relu_loop(const float* x, std::int64_t n, const RunScale& by, float* y) {
  normalise_body(
      x, n, by, y, [](float value, std::int64_t) __attribute__((always_inline)) { return value > 0 ? value : 0.0F; });
}
MILLRACE_VECTOR_CLONES void normalise_add_relu_loop(const float* x, const float* term, std::int64_t n,
                                                    const RunScale& by, float* y) {
  normalise_body(
      x, n, by, y, [=](float value, std::int64_t i) __attribute__((always_inline)) {
        const float sum = value + term[i];
        return sum > 0 ? sum : 0.0F;
      });
}

// gradient(element, lane)
template <class Gradient>
MILLRACE_INLINE void projections_body(const float* x, std::int64_t n, const Lanes& mean, RunProjections& sums,
                                      Gradient gradient) {
  float m[kRunLanes];
  float s[kRunLanes] = {};
  float p[kRunLanes] = {};
  take_lanes(mean, m);
  each_vector(
      n, [&](std::int64_t i, std::int64_t lanes) __attribute__((always_inline)) {
#pragma omp simd
        for (std::int64_t l = 0; l < lanes; ++l) {
          const float g = gradient(i + l, l);
          s[l] += g;
          p[l] += g * (x[i + l] - m[l]);
        }
      });
  give_lanes(s, sums.sum);
  give_lanes(p, sums.projection);
}
MILLRACE_VECTOR_CLONES void projections_loop(const float* x, const float* dy, std::int64_t n, const Lanes& mean,
                                             RunProjections& sums) {
  projections_body(
      x, n, mean, sums, [=](std::int64_t i, std::int64_t) __attribute__((always_inline)) { return dy[i]; });
}
MILLRACE_VECTOR_CLONES void projections_relu_loop(const float* x, const float* dy, std::int64_t n, const Lanes& mean,
                                                  const RunScale& by, RunProjections& sums) {
  float a[kRunLanes];
  float b[kRunLanes];
  take_lanes(by.scale, a);
  take_lanes(by.shift, b);
  projections_body(
      x, n, mean, sums, [&](std::int64_t i, std::int64_t l) __attribute__((always_inline)) {
        const float all = dy[i];
        return x[i] * a[l] + b[l] > 0 ? all : 0.0F;
      });
}
MILLRACE_VECTOR_CLONES void projections_add_relu_loop(const float* x, const float* y, const float* dy, std::int64_t n,
                                                      const Lanes& mean, float* g, RunProjections& sums) {
  projections_body(
      x, n, mean, sums, [=](std::int64_t i, std::int64_t) __attribute__((always_inline)) {
        const float all = dy[i];
        return g[i] = y[i] > 0 ? all : 0.0F;
      });
}
MILLRACE_VECTOR_CLONES void projections_sum_relu_loop(const float* x, const float* y, const float* dy,
                                                      const float* more, std::int64_t n, const Lanes& mean, float* g,
                                                      RunProjections& sums) {
  projections_body(
      x, n, mean, sums, [=](std::int64_t i, std::int64_t) __attribute__((always_inline)) {
        const float sum = dy[i] + more[i];
        return g[i] = y[i] > 0 ? sum : 0.0F;
      });
}

// gradient(element, lane)
template <class Gradient>
MILLRACE_INLINE void gradients_body(const float* x, std::int64_t n, const RunSlope& slope, float* dx,
                                    Gradient gradient) {
  float m[kRunLanes];
  float f[kRunLanes];
  float c[kRunLanes];
  float d[kRunLanes];
  take_lanes(slope.mean, m);
  take_lanes(slope.factor, f);
  take_lanes(slope.a, c);
  take_lanes(slope.b, d);
  each_vector(
      n, [&](std::int64_t i, std::int64_t lanes) __attribute__((always_inline)) {
#pragma omp simd
        for (std::int64_t l = 0; l < lanes; ++l) {
          dx[i + l] = f[l] * (gradient(i + l, l) - c[l] - (x[i + l] - m[l]) * d[l]);
        }
      });
}
MILLRACE_VECTOR_CLONES void gradients_loop(const float* x, const float* dy, std::int64_t n, const RunSlope& slope,
                                           float* dx) {
  gradients_body(
      x, n, slope, dx, [=](std::int64_t i, std::int64_t) __attribute__((always_inline)) { return dy[i]; });
}
MILLRACE_VECTOR_CLONES void gradients_relu_loop(const float* x, const float* dy, std::int64_t n, const RunSlope& slope,
                                                const RunScale& by, float* dx) {
  float a[kRunLanes];
  float b[kRunLanes];
  take_lanes(by.scale, a);
  take_lanes(by.shift, b);
  gradients_body(
      x, n, slope, dx, [&](std::int64_t i, std::int64_t l) __attribute__((always_inline)) {
        const float all = dy[i];
        return x[i] * a[l] + b[l] > 0 ? all : 0.0F;
      });
}

}  // namespace

void run_moments(const float* x, std::int64_t n, const Lanes& about, Lanes& sum, Lanes& squares) {
  moments_loop(x, n, about, sum, squares);
}

void run_normalise(const float* x, std::int64_t n, const RunScale& by, float* y) { normalise_loop(x, n, by, y); }
void run_normalise_relu(const float* x, std::int64_t n, const RunScale& by, float* y) {
  normalise_relu_loop(x, n, by, y);
}
void run_normalise_add_relu(const float* x, const float* term, std::int64_t n, const RunScale& by, float* y) {
  normalise_add_relu_loop(x, term, n, by, y);
}

void run_projections(const float* x, const float* dy, std::int64_t n, const Lanes& mean, RunProjections& sums) {
  projections_loop(x, dy, n, mean, sums);
}
void run_projections_relu(const float* x, const float* dy, std::int64_t n, const Lanes& mean, const RunScale& by,
                          RunProjections& sums) {
  projections_relu_loop(x, dy, n, mean, by, sums);
}
void run_projections_add_relu(const float* x, const float* y, const float* dy, const float* more, std::int64_t n,
                              const Lanes& mean, float* g, RunProjections& sums) {
  if (more != nullptr) {
    projections_sum_relu_loop(x, y, dy, more, n, mean, g, sums);
  } else {
    projections_add_relu_loop(x, y, dy, n, mean, g, sums);
  }
}

void run_gradients(const float* x, const float* dy, std::int64_t n, const RunSlope& slope, float* dx) {
  gradients_loop(x, dy, n, slope, dx);
}
void run_gradients_relu(const float* x, const float* dy, std::int64_t n, const RunSlope& slope, const RunScale& by,
                        float* dx) {
  gradients_relu_loop(x, dy, n, slope, by, dx);
}

}  // namespace millrace::kernels::onednn
