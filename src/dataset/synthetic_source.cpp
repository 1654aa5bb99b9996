// Samples for benchmarks: numbers that are functions of (seed, sample) alone (INTERFACES 9, synthetic).
#include "dataset/synthetic_source.h"

#include <string_view>

#include "base/errors.h"
#include "base/random.h"

namespace millrace::dataset {
namespace {

Random stream(std::uint64_t seed, std::string_view name, Split split, std::int64_t id) {
  const std::int64_t first = split == Split::test ? SyntheticSource::kFirstTestSample : 0;
  return {seed, name, 0, static_cast<std::uint64_t>(first + id)};
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
    const Random random = stream(seed_, "synthetic.input", split, id);
    for (std::int64_t i = 0; i < size; ++i) {
      *destination++ = static_cast<float>(random.normal(static_cast<std::uint64_t>(i)));
    }
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
