// Samples for benchmarks: numbers that are functions of (seed, sample) alone (INTERFACES 9, synthetic).
#pragma once

#include "dataset/source.h"

namespace millrace::dataset {

/// Inputs N(0, 1) or uniform tokens, labels uniform. A training epoch is 50,000 samples, though any number from 0 on
/// is a sample; the test split is the 1,000 samples from 2^40 on, numbered from 0 like any other split.
class SyntheticSource : public Source {
 public:
  static constexpr std::int64_t kEpoch = 50'000;
  static constexpr std::int64_t kTestSamples = 1'000;
  static constexpr std::int64_t kFirstTestSample = std::int64_t{1} << 40;

  /// \throws InvalidInput for an empty shape or no classes.
  SyntheticSource(std::uint64_t seed, SampleFormat format);

  std::int64_t samples(Split split) const override { return split == Split::train ? kEpoch : kTestSamples; }
  void read_inputs(Split split, std::span<const std::int64_t> ids, float* destination) const override;
  void read_inputs(Split split, std::span<const std::int64_t> ids, std::int32_t* destination) const override;
  void read_labels(Split split, std::span<const std::int64_t> ids, std::int32_t* destination) const override;

 private:
  std::uint64_t seed_;
};

}  // namespace millrace::dataset
