// Draws by Philox; expectations by numerical integration over quantiles.
#include "sim/noise.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "base/random.h"

namespace millrace::sim {
namespace {

// Φ, the distribution of a standard normal number.
double normal_below(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

// ∫ value(z) d(Φ(z)ⁿ): the expectation of value at the largest of n standard normal numbers, by the trapezoid rule on
// the probability between neighbours.
template <class Value>
double over_normal_maximum(std::int64_t n, Value value) {
  constexpr double kFrom = -9, kTo = 14, kStep = 1.0 / 256;
  double sum = 0;
  double below = 0;
  for (double z = kFrom; z < kTo; z += kStep) {
    const double next = std::pow(normal_below(z + kStep), static_cast<double>(n));
    sum += (next - below) * value(z + kStep / 2);
    below = next;
  }
  return sum;
}

}  // namespace

std::vector<Straggler> random_stragglers(std::uint64_t seed, std::int64_t ranks, double fraction, double factor) {
  std::vector<Straggler> out;
  const std::uint64_t name = hash64("straggler");
  for (std::int64_t r = 0; r < ranks; ++r) {
    if (Random(seed, name, static_cast<std::uint64_t>(r), 0).uniform(0) < fraction) {
      out.push_back({static_cast<std::int32_t>(r), factor});
    }
  }
  return out;
}

NoiseSource::NoiseSource(const Noise& noise)
    : shape_(noise.shape), spread_(noise.spread), seed_(noise.seed), name_hash_(hash64(noise.name)) {}

double NoiseSource::factor(std::int64_t rank, std::int64_t instruction) const {
  const Random draw(seed_, name_hash_, static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(instruction));
  switch (shape_) {
    case Shape::none:
      return 1;
    case Shape::lognormal:
      return std::exp(spread_ * draw.normal(0) - spread_ * spread_ / 2);
    case Shape::exponential:
      return 1 + spread_ * (-std::log1p(-draw.uniform(0)) - 1);
  }
  return 1;
}

double expected_normal_maximum(std::int64_t n) {
  return n <= 1 ? 0.0 : over_normal_maximum(n, [](double z) { return z; });
}

double expected_maximum(const Noise& noise, std::int64_t n) {
  if (n <= 1) return 1;
  const double s = noise.spread;
  switch (noise.shape) {
    case Shape::none:
      return 1;
    case Shape::lognormal:
      return over_normal_maximum(n, [s](double z) { return std::exp(s * z - s * s / 2); });
    case Shape::exponential: {
      // The largest of n exponential numbers is 1 + 1/2 + … + 1/n on average; the sum is ln n + γ + 1/2n beyond 1000.
      constexpr double kEuler = 0.57721566490153286;
      double sum = 0;
      for (std::int64_t k = 1; k <= std::min<std::int64_t>(n, 1000); ++k) sum += 1.0 / static_cast<double>(k);
      const auto real = static_cast<double>(n);
      if (n > 1000) sum = std::log(real) + kEuler + 0.5 / real;
      return 1 + s * (sum - 1);
    }
  }
  return 1;
}

double variance(const Noise& noise) {
  switch (noise.shape) {
    case Shape::none:
      return 0;
    case Shape::lognormal:
      return std::expm1(noise.spread * noise.spread);
    case Shape::exponential:
      return noise.spread * noise.spread;
  }
  return 0;
}

}  // namespace millrace::sim
