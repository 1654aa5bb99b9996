// Loss and gradient norm of an iteration.
#include "runtime/step_sums.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/update_loops.h"

namespace millrace::runtime {
namespace {

double squares_of(const BucketPlace& place, std::size_t position) {
  return gradient_squares(place.runner->parameters(), position);
}

}  // namespace

double gradient_squares(kernels::StageParameters& parameters, std::size_t position) {
  if (parameters.storage() == kernels::Storage::none) return 0;
  const std::int64_t count = parameters.range_elements(position, 1);
  const void* gradient = parameters.gradient_range(position);
  return parameters.precision() == kernels::Precision::fp64
             ? sum_of_squares(static_cast<const double*>(gradient), count)
             : sum_of_squares(static_cast<const float*>(gradient), count);
}

StepSums::StepSums(const Graph& graph, const Program& program, int rank, comm::Transport& transport)
    : program_(program), rank_(rank), transport_(transport), entry_(graph.tensors().size(), -1) {
  std::int32_t entries = 0;
  for (const TensorId parameter : graph.parameters()) entry_[static_cast<std::size_t>(parameter)] = entries++;
  parameters_ = static_cast<std::size_t>(entries);
  values_.resize(first_limb(2));
  std::vector<int> everyone(static_cast<std::size_t>(transport.size()));
  std::iota(everyone.begin(), everyone.end(), 0);
  if (everyone.size() > 1) all_ = transport.group(everyone);
}

void StepSums::clear() { std::fill(values_.begin(), values_.end(), 0.0); }

bool StepSums::is_lowest_owner(std::int32_t bucket) const {
  return program_.buckets[static_cast<std::size_t>(bucket)].owners.front() == rank_;
}

void StepSums::add_squares(std::int32_t bucket, const BucketPlace& place) {
  if (!is_lowest_owner(bucket)) return;
  for (std::size_t position = place.first; position < place.first + place.count; ++position) {
    const std::int32_t entry = entry_[static_cast<std::size_t>(place.runner->parameter_order()[position])];
    if (entry >= 0) values_[static_cast<std::size_t>(entry)] = squares_of(place, position);  // else a buffer
  }
}

bool StepSums::add_finite_squares(std::int32_t bucket, const BucketPlace& place) {
  bool finite = true;
  for (std::size_t position = place.first; position < place.first + place.count; ++position) {
    finite = finite && std::isfinite(squares_of(place, position));
  }
  if (!finite) {
    if (is_lowest_owner(bucket)) add_left_out();
    return false;
  }
  if (!is_lowest_owner(bucket)) return true;
  for (std::size_t position = place.first; position < place.first + place.count; ++position) {
    const std::int32_t entry = entry_[static_cast<std::size_t>(place.runner->parameter_order()[position])];
    if (entry >= 0) values_[static_cast<std::size_t>(entry)] += squares_of(place, position);
  }
  return true;
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
