// Where samples come from: a data file or made-up numbers, read by sample number into the caller's rows.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace millrace::dataset {

enum class Split { train, test };

enum class InputKind {
  real,   ///< float: pixels, features
  index,  ///< int32: tokens
};

/// What one sample looks like.
struct SampleFormat {
  InputKind kind = InputKind::real;
  std::vector<std::int64_t> shape;      ///< of one sample's input, without the batch axis: [C, H, W], [K] or [T]
  std::int64_t labels_per_sample = 1;   ///< 1, or T for text
  std::int64_t classes = 0;             ///< labels (and tokens) are in [0, classes)

  std::int64_t input_size() const;      ///< numbers in one sample's input
};

/// Samples of the two splits. Any thread may read; each rank has a source of its own and asks for its own rows.
/// Asking for the inputs of the other kind is a std::logic_error, a sample number outside the split InvalidInput.
class Source {
 public:
  virtual ~Source() = default;

  const SampleFormat& format() const { return format_; }
  virtual std::int64_t samples(Split split) const = 0;  ///< of one epoch

  /// Writes ids.size() × format().input_size() numbers, sample after sample.
  virtual void read_inputs(Split split, std::span<const std::int64_t> ids, float* destination) const;
  virtual void read_inputs(Split split, std::span<const std::int64_t> ids, std::int32_t* destination) const;
  /// Writes ids.size() × format().labels_per_sample class numbers.
  virtual void read_labels(Split split, std::span<const std::int64_t> ids, std::int32_t* destination) const = 0;

 protected:
  explicit Source(SampleFormat format) : format_(std::move(format)) {}

 private:
  SampleFormat format_;
};

}  // namespace millrace::dataset
