// Loss and gradient norm of an iteration.
#include "runtime/step_sums.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace millrace::runtime {
namespace {

template <class Real>
double sum_of_squares(const Real* values, std::int64_t count) {
  // Double sums of four lanes: exact enough for the norm, and vectorised.
  double lanes[4] = {};
  std::int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (std::int64_t k = 0; k < 4; ++k) {
      const auto v = static_cast<double>(values[i + k]);
      lanes[k] += v * v;
    }
  }
  double sum = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
  for (; i < count; ++i) sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return sum;
}

}  // namespace

StepSums::StepSums(const Graph& graph, const Program& program, int rank, comm::Transport& transport)
    : program_(program), rank_(rank), transport_(transport), entry_(graph.tensors().size(), -1) {
  std::int32_t entries = 0;
  for (const TensorId parameter : graph.parameters()) entry_[static_cast<std::size_t>(parameter)] = entries++;
  values_.resize(static_cast<std::size_t>(entries) + 2);
  std::vector<int> everyone(static_cast<std::size_t>(transport.size()));
  std::iota(everyone.begin(), everyone.end(), 0);
  if (everyone.size() > 1) all_ = transport.group(everyone);
}

void StepSums::clear() { std::fill(values_.begin(), values_.end(), 0.0); }

void StepSums::add_squares(std::int32_t bucket, const BucketPlace& place) {
  if (program_.buckets[static_cast<std::size_t>(bucket)].owners.front() != rank_) return;
  kernels::StageParameters& parameters = place.runner->parameters();
  if (parameters.storage() == kernels::Storage::none) return;
  for (std::size_t position = place.first; position < place.first + place.count; ++position) {
    const TensorId tensor = parameters.order()[position];
    const std::int32_t entry = entry_[static_cast<std::size_t>(tensor)];
    if (entry < 0) continue;  // a buffer
    const std::int64_t count = parameters.range_elements(position, 1);
    const void* gradient = parameters.gradient_range(position);
    values_[static_cast<std::size_t>(entry)] = parameters.precision() == kernels::Precision::fp64
                                                   ? sum_of_squares(static_cast<const double*>(gradient), count)
                                                   : sum_of_squares(static_cast<const float*>(gradient), count);
  }
}

void StepSums::reduce(comm::WaitObserver& observer) {
  if (all_ < 0) return;
  const comm::Ticket ticket =
      transport_.all_reduce(all_, values_.data(), static_cast<std::int64_t>(values_.size()), comm::Element::float64);
  transport_.wait(ticket, &observer);
}

double StepSums::gradient_norm() const { return std::sqrt(std::accumulate(values_.begin(), values_.end() - 2, 0.0)); }

}  // namespace millrace::runtime
