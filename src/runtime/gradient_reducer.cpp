// Buckets are contiguous in a stage's gradient storage, so a sum works in place.
#include "runtime/gradient_reducer.h"

#include <algorithm>

#include "program/storage_order.h"

namespace millrace::runtime {

GradientReducer::GradientReducer(const Program& program, std::vector<StageRunner*> runners, int rank,
                                 comm::Transport& transport)
    : transport_(transport),
      places_(program.buckets.size()),
      groups_(program.buckets.size(), -1),
      tickets_(program.buckets.size(), comm::kNoTicket) {
  for (StageRunner* runner : runners) {
    for (const StoredBucket& stored : stored_buckets(program, runner->stage())) {
      places_[static_cast<std::size_t>(stored.bucket)] = {runner, stored.first, stored.count};
    }
  }
  for (std::size_t b = 0; b < program.buckets.size(); ++b) {
    const std::vector<int>& owners = program.buckets[b].owners;
    const bool owned = std::find(owners.begin(), owners.end(), rank) != owners.end();
    if (owned && owners.size() > 1) groups_[b] = transport.group(owners);
  }
}

void GradientReducer::start(std::int32_t bucket) {
  const auto b = static_cast<std::size_t>(bucket);
  if (groups_[b] < 0) return;
  const BucketPlace& place = places_[b];
  kernels::StageParameters& parameters = place.runner->parameters();
  const bool wide = parameters.precision() == kernels::Precision::fp64;
  tickets_[b] = transport_.all_reduce(groups_[b], parameters.gradient_range(place.first),
                                      parameters.range_elements(place.first, place.count),
                                      wide ? comm::Element::float64 : comm::Element::float32);
}

void GradientReducer::wait(std::int32_t bucket, comm::WaitObserver& observer) {
  comm::Ticket& ticket = tickets_[static_cast<std::size_t>(bucket)];
  if (ticket == comm::kNoTicket) return;
  transport_.wait(ticket, &observer);
  ticket = comm::kNoTicket;
}

}  // namespace millrace::runtime
