// Counter-based random numbers (Philox 4x32-10): each is a function of (seed, name, step, sample, index), never
// of the rank, the order of calls or the number of processes.
#include "base/random.h"

#include <cmath>
#include <numbers>

#include <Random123/philox.h>

#include "base/hash.h"

namespace millrace {
namespace {

std::uint32_t low(std::uint64_t v) { return static_cast<std::uint32_t>(v); }
std::uint32_t high(std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); }

// splitmix64: spreads (seed, name) over the key and (step, sample) over the counter's upper half.
std::uint64_t mix(std::uint64_t v) {
  v += 0x9e3779b97f4a7c15ULL;
  v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9ULL;
  v = (v ^ (v >> 27)) * 0x94d049bb133111ebULL;
  return v ^ (v >> 31);
}

__extension__ using Wide = unsigned __int128;

double to_unit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1.0p-53; }

}  // namespace

Random::Random(std::uint64_t seed, std::string_view name, std::uint64_t step, std::uint64_t sample)
    : Random(seed, hash64(name), step, sample) {}

Random::Random(std::uint64_t seed, std::uint64_t name_hash, std::uint64_t step, std::uint64_t sample) {
  const std::uint64_t key = mix(mix(seed) ^ name_hash);
  const std::uint64_t upper = mix(mix(step) + sample);
  key_ = {low(key), high(key)};
  counter_high_ = {low(upper), high(upper)};
}

std::array<std::uint32_t, 4> Random::block(std::uint64_t index) const {
  const r123::Philox4x32::ctr_type counter{{low(index), high(index), counter_high_[0], counter_high_[1]}};
  const r123::Philox4x32::key_type key{{key_[0], key_[1]}};
  const auto out = r123::Philox4x32{}(counter, key);
  return {out[0], out[1], out[2], out[3]};
}

std::uint64_t Random::bits(std::uint64_t index) const {
  const auto b = block(index);
  return (static_cast<std::uint64_t>(b[1]) << 32) | b[0];
}

double Random::uniform(std::uint64_t index) const { return to_unit(bits(index)); }

double Random::normal(std::uint64_t index) const {
  // Box-Muller on the two 64-bit halves of one block; 1 - u keeps the logarithm's argument above 0.
  const auto b = block(index);
  const double u = to_unit((static_cast<std::uint64_t>(b[1]) << 32) | b[0]);
  const double v = to_unit((static_cast<std::uint64_t>(b[3]) << 32) | b[2]);
  return std::sqrt(-2.0 * std::log(1.0 - u)) * std::cos(2.0 * std::numbers::pi * v);
}

std::uint64_t Random::below(std::uint64_t bound, std::uint64_t index) const {
  // Multiply-shift: the bias is below bound / 2^64.
  return static_cast<std::uint64_t>((static_cast<Wide>(bits(index)) * bound) >> 64);
}

}  // namespace millrace
