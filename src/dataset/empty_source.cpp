// Nothing is read: a sample has no inputs and no labels.
#include "dataset/empty_source.h"

namespace millrace::dataset {

EmptySource::EmptySource(std::int64_t samples)
    : Source({.kind = InputKind::real, .shape = {0}, .labels_per_sample = 0, .classes = 0}), samples_(samples) {}

void EmptySource::read_labels(Split, std::span<const std::int64_t>, std::int32_t*) const {}

}  // namespace millrace::dataset
