// Random slowness: draws that are functions of (seed, name, rank, instruction), and what to expect of the slowest of n.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace::sim {

enum class Shape : std::uint8_t {
  none,
  lognormal,   ///< exp(σz − σ²/2): mean 1
  exponential  ///< 1 + σ(e − 1), e exponential with mean 1: mean 1, a long tail upwards
};

/// A factor of mean 1 on every compute step of a rank, drawn anew for each.
struct Noise {
  Shape shape = Shape::none;
  double spread = 0;  ///< σ, about the relative standard deviation; exponential: at most 1
  std::uint64_t seed = 1;
  std::string name = "jitter";        ///< names the stream of draws
  std::vector<std::int32_t> ranks{};  ///< that have it; empty: all
};

/// Ranks that are slow all the time.
struct Straggler {
  std::int32_t rank = 0;
  double factor = 1;  ///< on every compute step
};

/// `fraction` of `ranks` ranks, each chosen by its own draw from (seed, "straggler", rank), slow by `factor`.
std::vector<Straggler> random_stragglers(std::uint64_t seed, std::int64_t ranks, double fraction, double factor);

/// Draws factors.
class NoiseSource {
 public:
  explicit NoiseSource(const Noise& noise);
  double factor(std::int64_t rank, std::int64_t instruction) const;

 private:
  Shape shape_;
  double spread_;
  std::uint64_t seed_, name_hash_;
};

/// Expected maximum of n independent factors; 1 for n = 1. Grows with n.
double expected_maximum(const Noise& noise, std::int64_t n);

/// Expected maximum of n independent standard normal numbers; 0 for n = 1.
double expected_normal_maximum(std::int64_t n);

/// Variance of one factor.
double variance(const Noise& noise);

}  // namespace millrace::sim
