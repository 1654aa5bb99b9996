// Loss and gradient norm of an iteration.
#include "runtime/step_sums.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/update_loops.h"

namespace millrace::runtime {

double gradient_squares(kernels::StageParameters& parameters, std::size_t position, ElementRange part) {
  if (parameters.storage() == kernels::Storage::none) return 0;
  const void* gradient = parameters.gradient_range(position);
  return parameters.precision() == kernels::Precision::fp64
             ? sum_of_squares(static_cast<const double*>(gradient) + part.begin, part.size())
             : sum_of_squares(static_cast<const float*>(gradient) + part.begin, part.size());
}

StepSums::StepSums(const Graph& graph, const Program& program, int rank, comm::Transport& transport)
    : program_(program), rank_(rank), transport_(transport), entry_(graph.tensors().size(), -1) {
  std::int32_t entries = 0;
  for (const TensorId parameter : graph.parameters()) entry_[static_cast<std::size_t>(parameter)] = entries++;
  parameters_ = static_cast<std::size_t>(entries);
  values_.resize(first_limb(2));
  squares_.reserve(graph.tensors().size());
  std::vector<int> everyone(static_cast<std::size_t>(transport.size()));
  std::iota(everyone.begin(), everyone.end(), 0);
  if (everyone.size() > 1) all_ = transport.group(everyone);
}

void StepSums::clear() { std::fill(values_.begin(), values_.end(), 0.0); }

// Whether this rank gives what the bucket has to sums of all ranks.
bool StepSums::tells(std::int32_t bucket, const BucketPlace& place) const {
  return place.in_parts || program_.buckets[static_cast<std::size_t>(bucket)].owners.front() == rank_;
}

// f(position, squares) of what this rank updates of each tensor.
template <class F>
void StepSums::each_square(const BucketPlace& place, F f) const {
  kernels::StageParameters& parameters = place.runner->parameters();
  std::int64_t first = 0;
  for (std::size_t position = place.first; position < place.first + place.count; ++position) {
    const std::int64_t count = parameters.range_elements(position, 1);
    const ElementRange part{std::clamp<std::int64_t>(place.part.begin - first, 0, count),
                            std::clamp<std::int64_t>(place.part.end - first, 0, count)};
    f(position, gradient_squares(parameters, position, part));
    first += count;
  }
}

void StepSums::add_squares(std::int32_t bucket, const BucketPlace& place) {
  if (!tells(bucket, place)) return;
  each_square(place, [&](std::size_t position, double squares) {
    const std::int32_t entry = entry_[static_cast<std::size_t>(place.runner->parameter_order()[position])];
    if (entry >= 0) values_[static_cast<std::size_t>(entry)] = squares;  // else a buffer
  });
}

bool StepSums::add_finite_squares(std::int32_t bucket, const BucketPlace& place) {
  bool finite = true;
  squares_.clear();
  each_square(place, [&](std::size_t, double squares) {
    finite = finite && std::isfinite(squares);
    squares_.push_back(squares);
  });
  if (!finite) {
    if (tells(bucket, place)) add_left_out();
    return false;
  }
  if (!tells(bucket, place)) return true;
  for (std::size_t i = 0; i < place.count; ++i) {
    const std::int32_t entry = entry_[static_cast<std::size_t>(place.runner->parameter_order()[place.first + i])];
    if (entry >= 0) values_[static_cast<std::size_t>(entry)] += squares_[i];
  }
  return true;
}

void StepSums::add_parts(std::int32_t bucket, const BucketPlace& place, double squares, bool finite) {
  if (!tells(bucket, place)) return;
  if (!finite) add_left_out();
  values_[static_cast<std::size_t>(entry_[static_cast<std::size_t>(place.runner->parameter_order()[place.first])])] +=
      squares;
}

void StepSums::add_signals(const SignalCounts& counts) {
  double* at = values_.data() + parameters_ + 1;
  at[0] += counts.terminate;
  at[1] += counts.interrupt;
  at[2] += counts.user;
}

SignalCounts StepSums::signals() const {
  const double* at = values_.data() + parameters_ + 1;
  return {at[0], at[1], at[2]};
}

void StepSums::start() {
  if (all_ < 0) return;
  ticket_ =
      transport_.all_reduce(all_, values_.data(), static_cast<std::int64_t>(values_.size()), comm::Element::float64);
}

void StepSums::finish(comm::WaitObserver& observer) {
  if (ticket_ == comm::kNoTicket) return;
  transport_.wait(ticket_, &observer);
  ticket_ = comm::kNoTicket;
}

double StepSums::gradient_norm() const {
  return std::sqrt(std::accumulate(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(parameters_), 0.0));
}

}  // namespace millrace::runtime
