// Which samples make up each step's global batch: one permutation an epoch, the same on every rank.
#include "dataset/order.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/random.h"

namespace millrace::dataset {

const std::vector<std::string>& tail_names() {
  static const std::vector<std::string> names{"drop", "pad", "uneven"};
  return names;
}

SampleOrder::SampleOrder(std::int64_t samples, std::int64_t batch, Tail tail)
    : samples_(samples), batch_(batch), tail_(tail), steps_(0) {
  if (samples < 1) throw InvalidInput("there are no samples to read");
  if (batch < 1) throw InvalidInput(fmt::format("a batch of {} samples; at least 1 is needed", batch));
  if (tail == Tail::drop && batch > samples) {
    throw InvalidInput(fmt::format("a batch of {} samples is larger than the data ({} samples), and tail: drop leaves "
                                   "nothing; use a smaller batch, or tail: pad or uneven",
                                   batch, samples));
  }
  steps_ = tail == Tail::drop ? samples / batch : (samples + batch - 1) / batch;
}

SampleOrder::SampleOrder(std::uint64_t seed, std::int64_t samples, std::int64_t batch, Tail tail)
    : SampleOrder(samples, batch, tail) {
  seed_ = seed;
  shuffled_ = true;
}

SampleOrder SampleOrder::in_file_order(std::int64_t samples, std::int64_t batch, Tail tail) {
  return SampleOrder(samples, batch, tail);
}

std::int64_t SampleOrder::dropped_per_epoch() const { return tail_ == Tail::drop ? samples_ % batch_ : 0; }

std::int64_t SampleOrder::valid_rows(std::int64_t step) const {
  return std::min(batch_, samples_ - (step % steps_) * batch_);
}

Batch SampleOrder::batch(std::int64_t step) {
  Batch made;
  batch(step, made);
  return made;
}

void SampleOrder::batch(std::int64_t step, Batch& into) {
  into.epoch = step / steps_;
  into.valid = valid_rows(step);
  into.ids.resize(static_cast<std::size_t>(tail_ == Tail::pad ? batch_ : into.valid));
  const std::int64_t first = (step % steps_) * batch_;
  if (shuffled_) shuffle(into.epoch);
  for (std::size_t row = 0; row < into.ids.size(); ++row) {
    // Padding rows repeat the batch's own samples, so that they cost no other read.
    const std::size_t at = static_cast<std::size_t>(first) + row % static_cast<std::size_t>(into.valid);
    into.ids[row] = shuffled_ ? permutation_[at] : static_cast<std::int64_t>(at);
  }
}

void SampleOrder::shuffle(std::int64_t epoch) {
  if (epoch == epoch_) return;
  permutation_.resize(static_cast<std::size_t>(samples_));
  std::iota(permutation_.begin(), permutation_.end(), std::int64_t{0});
  const Random random(seed_, "shuffle", static_cast<std::uint64_t>(epoch));
  for (std::size_t i = permutation_.size() - 1; i > 0; --i) {
    std::swap(permutation_[i], permutation_[random.below(i + 1, i)]);
  }
  epoch_ = epoch;
}

}  // namespace millrace::dataset
