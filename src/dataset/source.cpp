// Where samples come from: a data file or made-up numbers, read by sample number into the caller's rows.
#include "dataset/source.h"

#include <stdexcept>

namespace millrace::dataset {

std::int64_t SampleFormat::input_size() const {
  std::int64_t size = 1;
  for (const std::int64_t extent : shape) size *= extent;
  return size;
}

void Source::read_inputs(Split, std::span<const std::int64_t>, float*) const {
  throw std::logic_error("this source has no real inputs");
}

void Source::read_inputs(Split, std::span<const std::int64_t>, std::int32_t*) const {
  throw std::logic_error("this source has no index inputs");
}

}  // namespace millrace::dataset
