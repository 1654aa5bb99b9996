// Buckets are contiguous in a stage's gradient storage, so a sum works in place.
#include "runtime/gradient_reducer.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "kernels/gradient_tree.h"
#include "program/buckets.h"
#include "program/storage_order.h"

namespace millrace::runtime {
namespace {

comm::Element element_of(const kernels::StageParameters& parameters) {
  return parameters.precision() == kernels::Precision::fp64 ? comm::Element::float64 : comm::Element::float32;
}

std::int64_t now() { return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

GradientReducer::GradientReducer(const Graph& graph, const Program& program, std::vector<StageRunner*> runners,
                                 int rank, comm::Transport& transport)
    : transport_(transport), states_(program.buckets.size()) {
  for (StageRunner* runner : runners) {
    for (const StoredBucket& stored :
         stored_buckets(program, runner->stage(), runner->group() == nullptr ? 0 : runner->group()->index())) {
      BucketPlace place{runner, stored.first, stored.count};
      place.part = {0, runner->parameters().range_elements(stored.first, stored.count)};
      const Bucket& bucket = program.buckets[static_cast<std::size_t>(stored.bucket)];
      place.in_parts = is_sharded(program, bucket);
      if (place.in_parts) place.part = updated_part(graph, program, bucket, rank);
      state(stored.bucket).places.push_back(place);
    }
  }
  for (std::size_t b = 0; b < program.buckets.size(); ++b) {
    const std::vector<int>& owners = program.buckets[b].owners;
    const bool owned = std::find(owners.begin(), owners.end(), rank) != owners.end();
    if (owned && owners.size() > 1) states_[b].group = transport.group(owners);
  }
  under_way_.reserve(states_.size());
  gathering_.reserve(states_.size());
}

const BucketPlace& GradientReducer::place(std::int32_t bucket) const {
  static const BucketPlace kNowhere;
  return state(bucket).places.empty() ? kNowhere : state(bucket).places.front();
}

void GradientReducer::combine(State& state) {
  const BucketPlace& first = state.places.front();
  kernels::StageParameters& sum = first.runner->parameters();
  const std::int64_t elements =
      sum.storage() == kernels::Storage::real ? sum.range_elements(first.first, first.count) : 0;
  for (const BucketPlace& place : state.places) {
    kernels::StageParameters& parameters = place.runner->parameters();
    place.runner->drop_repeated(place.first, place.count);
    parameters.combine_uses(place.first, place.count);
    if (&place == &first) continue;
    kernels::add_gradients(sum.gradient_range(first.first), parameters.gradient_range(place.first), elements,
                           sum.precision());
  }
  state.phase = Phase::combined;
}

void GradientReducer::start(std::int32_t bucket) {
  State& at = state(bucket);
  if (at.group < 0) return;
  combine(at);
  const BucketPlace& place = at.places.front();
  kernels::StageParameters& parameters = place.runner->parameters();
  void* const data = parameters.gradient_range(place.first);
  const std::int64_t count = parameters.gradient_elements(place.first, place.count);
  at.started = now();
  at.ticket = place.in_parts ? transport_.reduce_scatter(at.group, data, count, element_of(parameters))
                             : transport_.all_reduce(at.group, data, count, element_of(parameters));
  under_way_.push_back(bucket);
}

void GradientReducer::gather(std::int32_t bucket) {
  State& at = state(bucket);
  const BucketPlace& place = at.places.front();
  kernels::StageParameters& parameters = place.runner->parameters();
  at.started = now();
  at.ticket = transport_.all_gather(at.group, parameters.value_range(place.first),
                                    parameters.range_elements(place.first, place.count), element_of(parameters));
  under_way_.push_back(bucket);
  gathering_.push_back(bucket);
}

void GradientReducer::finish_gathers(comm::WaitObserver& observer) {
  for (const std::int32_t bucket : gathering_) {
    State& at = state(bucket);
    wait(bucket, observer);
    const BucketPlace& first = at.places.front();
    copy_from_first(at, true, {0, first.runner->parameters().range_elements(first.first, first.count)});
  }
  gathering_.clear();
}

// Into the other copies of this rank.
void GradientReducer::copy_from_first(const State& state, bool values, ElementRange part) {
  const BucketPlace& first = state.places.front();
  kernels::StageParameters& from = first.runner->parameters();
  if (from.storage() == kernels::Storage::none) return;
  const std::int64_t size = kernels::real_bytes(from.precision());
  for (std::size_t i = 1; i < state.places.size(); ++i) {
    const BucketPlace& place = state.places[i];
    kernels::StageParameters& to = place.runner->parameters();
    const void* source = values ? from.value_range(first.first) : from.gradient_range(first.first);
    void* target = values ? to.value_range(place.first) : to.gradient_range(place.first);
    std::memcpy(static_cast<std::byte*>(target) + part.begin * size,
                static_cast<const std::byte*>(source) + part.begin * size,
                static_cast<std::size_t>(part.size() * size));
  }
}

void GradientReducer::ended(State& state) {
  state.ticket = comm::kNoTicket;
  in_flight_ += Seconds(static_cast<double>(now() - state.started) * 1e-9);
}

void GradientReducer::poll() {
  std::erase_if(under_way_, [&](std::int32_t bucket) {
    State& at = state(bucket);
    if (!transport_.test(at.ticket)) return false;
    ended(at);
    return true;
  });
}

void GradientReducer::wait(std::int32_t bucket, comm::WaitObserver& observer) {
  State& at = state(bucket);
  if (at.ticket == comm::kNoTicket) return;
  transport_.wait(at.ticket, &observer);
  ended(at);
  std::erase(under_way_, bucket);
}

void GradientReducer::finish(std::int32_t bucket, comm::WaitObserver& observer) {
  wait(bucket, observer);
  State& at = state(bucket);
  if (at.phase == Phase::complete) return;
  if (at.phase == Phase::gathering) combine(at);
  copy_from_first(at, false, at.places.front().part);
  at.phase = Phase::complete;
}

void GradientReducer::clear(State& state, bool statistics) {
  for (const BucketPlace& place : state.places) {
    kernels::StageParameters& parameters = place.runner->parameters();
    const Graph& graph = place.runner->part_graph();
    for (std::size_t i = place.first; i < place.first + place.count; ++i) {
      const bool is_statistic = graph.tensor(parameters.order()[i]).role == Role::buffer;
      if (is_statistic == statistics) parameters.discard_gradients(i, 1);
    }
  }
}

void GradientReducer::clear_statistics(std::int32_t bucket) { clear(state(bucket), true); }

void GradientReducer::clear_gradients(std::int32_t bucket) {
  clear(state(bucket), false);
  state(bucket).phase = Phase::gathering;
}

void GradientReducer::clear(std::int32_t bucket) {
  State& at = state(bucket);
  for (const BucketPlace& place : at.places) place.runner->parameters().discard_gradients(place.first, place.count);
  at.phase = Phase::gathering;
}

}  // namespace millrace::runtime
