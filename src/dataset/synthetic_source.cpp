// Samples for benchmarks: numbers that are functions of (seed, sample) alone (INTERFACES 9, synthetic).
#include "dataset/synthetic_source.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <string_view>

#include "base/errors.h"
#include "base/random.h"

namespace millrace::dataset {
namespace {

Random stream(std::uint64_t seed, std::string_view name, Split split, std::int64_t id) {
  const std::int64_t first = split == Split::test ? SyntheticSource::kFirstTestSample : 0;
  return {seed, name, 0, static_cast<std::uint64_t>(first + id)};
}

// N(0, 1) in parts of equal weight, each by the value in its middle. Making up a batch must cost little beside training
// on it, and takes a look-up a number; a logarithm and a cosine each took a tenth of the iterations of a small network.
constexpr int kBits = 12;
constexpr std::size_t kParts = std::size_t{1} << kBits;
constexpr std::int64_t kOfDraw = 64 / kBits;

std::array<float, kParts> quantiles() {
  std::array<float, kParts> values{};
  double x = 0;
  for (std::size_t i = kParts / 2; i < kParts; ++i) {
    const double above = 1 - (static_cast<double>(i) + 0.5) / kParts;
    double step = 1;
    while (std::abs(step) > 1e-12) {  // Newton's: the one before is near, and the tail bends towards the root
      const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
      step = (std::erfc(x / std::numbers::sqrt2) / 2 - above) / density;
      x += step;
    }
    values[i] = static_cast<float>(x);
    values[kParts - 1 - i] = -values[i];
  }
  return values;
}

void write_normals(const Random& random, std::int64_t count, float*& destination) {
  static const std::array<float, kParts> known = quantiles();
  for (std::int64_t i = 0; i < count; i += kOfDraw) {
    std::uint64_t bits = random.bits(static_cast<std::uint64_t>(i / kOfDraw));
    for (std::int64_t left = std::min(kOfDraw, count - i); left > 0; --left, bits >>= kBits) {
      *destination++ = known[bits % kParts];
    }
  }
}

void write_indices(const Random& random, std::int64_t count, std::int64_t bound, std::int32_t*& destination) {
  for (std::int64_t i = 0; i < count; ++i) {
    *destination++ =
        static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(bound), static_cast<std::uint64_t>(i)));
  }
}

}  // namespace

SyntheticSource::SyntheticSource(std::uint64_t seed, SampleFormat format) : Source(std::move(format)), seed_(seed) {
  if (this->format().input_size() < 1 || this->format().classes < 1 || this->format().labels_per_sample < 1) {
    throw InvalidInput("synthetic data needs a sample shape without empty axes, and at least one class and label");
  }
}

void SyntheticSource::read_inputs(Split split, std::span<const std::int64_t> ids, float* destination) const {
  if (format().kind != InputKind::real) return Source::read_inputs(split, ids, destination);
  const std::int64_t size = format().input_size();
  for (const std::int64_t id : ids) {
    write_normals(stream(seed_, "synthetic.input", split, id), size, destination);
  }
}

void SyntheticSource::read_inputs(Split split, std::span<const std::int64_t> ids, std::int32_t* destination) const {
  if (format().kind != InputKind::index) return Source::read_inputs(split, ids, destination);
  for (const std::int64_t id : ids) {
    write_indices(stream(seed_, "synthetic.input", split, id), format().input_size(), format().classes, destination);
  }
}

void SyntheticSource::read_labels(Split split, std::span<const std::int64_t> ids, std::int32_t* destination) const {
  for (const std::int64_t id : ids) {
    write_indices(stream(seed_, "synthetic.label", split, id), format().labels_per_sample, format().classes,
                  destination);
  }
}

}  // namespace millrace::dataset
