// Samples that have numbers and no content: for runs that compute nothing.
#pragma once

#include "dataset/source.h"

namespace millrace::dataset {

/// `samples` training samples of no numbers and no labels; the test split is empty.
class EmptySource final : public Source {
 public:
  explicit EmptySource(std::int64_t samples);
  std::int64_t samples(Split split) const override { return split == Split::train ? samples_ : 0; }
  void read_labels(Split split, std::span<const std::int64_t> ids, std::int32_t* destination) const override;

 private:
  std::int64_t samples_;
};

}  // namespace millrace::dataset
