// Loops of batch norm over runs: what one group of channels has in one sample, which lies in one piece.
#pragma once

#include <array>
#include <cstdint>

namespace millrace::kernels::onednn {

/// Element i of a run belongs to lane i mod 16. Blocks of 8 or 16 channels, a single channel and channels without image
/// axes all fall into such lanes.
inline constexpr std::int64_t kRunLanes = 16;
using Lanes = std::array<float, kRunLanes>;

/// sum = Σ (x − about), squares = Σ (x − about)².
void run_moments(const float* x, std::int64_t n, const Lanes& about, Lanes& sum, Lanes& squares);

/// y = x · scale + shift.
struct RunScale {
  Lanes scale{}, shift{};
};
void run_normalise(const float* x, std::int64_t n, const RunScale& by, float* y);
void run_normalise_relu(const float* x, std::int64_t n, const RunScale& by, float* y);
/// `term` is added before ReLU.
void run_normalise_add_relu(const float* x, const float* term, std::int64_t n, const RunScale& by, float* y);

/// Σ g and Σ g · (x − mean), of the gradient g of a batch norm's output.
struct RunProjections {
  Lanes sum{}, projection{};
};
void run_projections(const float* x, const float* dy, std::int64_t n, const Lanes& mean, RunProjections& sums);
/// With ReLU behind the batch norm: g is dy where x · scale + shift is above zero.
void run_projections_relu(const float* x, const float* dy, std::int64_t n, const Lanes& mean, const RunScale& by,
                          RunProjections& sums);
/// With addition and ReLU behind it, which left y: g is dy (+ more, where that is not null) where y is above zero, and
/// is written down, also over dy.
void run_projections_add_relu(const float* x, const float* y, const float* dy, const float* more, std::int64_t n,
                              const Lanes& mean, float* g, RunProjections& sums);

/// dx = factor · (g − a − (x − mean) · b), also over dy.
struct RunSlope {
  Lanes mean{}, factor{}, a{}, b{};
};
void run_gradients(const float* x, const float* dy, std::int64_t n, const RunSlope& slope, float* dx);
void run_gradients_relu(const float* x, const float* dy, std::int64_t n, const RunSlope& slope, const RunScale& by,
                        float* dx);

}  // namespace millrace::kernels::onednn
