// Changes rates where something begins or ends, and nowhere else.
#include "sim/flows.h"

#include <algorithm>

#include "base/index.h"

namespace millrace::sim {
namespace {

void drop(std::vector<std::int32_t>& list, std::int32_t value) {
  const auto found = std::find(list.begin(), list.end(), value);
  *found = list.back();
  list.pop_back();
}

}  // namespace

Flows::Flows(std::int32_t ports, std::size_t ranks, double overlap, EventHeap& heap)
    : overlap_(overlap), heap_(heap), ranks_(ranks), ports_(at(ports)) {}

std::int32_t Flows::add(Flow flow) {
  flow.alive = true;
  if (unused_.empty()) {
    flows_.push_back(flow);
    return static_cast<std::int32_t>(flows_.size()) - 1;
  }
  const std::int32_t index = unused_.back();
  unused_.pop_back();
  flows_[at(index)] = flow;
  return index;
}

double Flows::rate(const Flow& flow) const {
  if (flow.computes >= 0) return ranks_[at(flow.computes)].transfers.empty() ? 1.0 : 1 / overlap_;
  double rate = 1;
  for (const PortUse& use : flow.ports) {
    const double load = ports_[at(use.port)].load;
    if (load > 1) rate = std::min(rate, 1 / load);
  }
  if (overlap_ != 1) {
    const bool computing = std::any_of(flow.ranks.begin(), flow.ranks.end(),
                                       [&](std::int32_t rank) { return ranks_[at(rank)].compute >= 0; });
    if (computing) rate /= overlap_;
  }
  return rate;
}

void Flows::rerate(double time, std::int32_t index) {
  Flow& flow = flows_[at(index)];
  const double now = rate(flow);
  if (now == flow.rate) return;
  flow.left = std::max(0.0, flow.left - (time - flow.updated) * flow.rate);
  flow.updated = time;
  flow.rate = now;
  flow.end = time + flow.left / now;
  heap_.push({flow.end, flow_key(index)});
}

void Flows::rerate_transfers_of(double time, std::int32_t rank) {
  if (overlap_ == 1) return;
  for (const std::int32_t transfer : ranks_[at(rank)].transfers) rerate(time, transfer);
}

// What shares a port or a rank with a transfer.
void Flows::rerate_around(double time, const Flow& flow) {
  for (const PortUse& use : flow.ports) {
    for (const std::int32_t other : ports_[at(use.port)].flows) rerate(time, other);
  }
  if (overlap_ == 1) return;
  for (const std::int32_t rank : flow.ranks) {
    if (ranks_[at(rank)].compute >= 0) rerate(time, ranks_[at(rank)].compute);
  }
}

void Flows::begin_compute(double time, std::int32_t rank, double work, std::int64_t token) {
  const std::int32_t index = add({.token = token, .began = time, .updated = time, .left = work, .computes = rank});
  ranks_[at(rank)].compute = index;
  rerate(time, index);
  rerate_transfers_of(time, rank);
}

void Flows::begin_transfer(double time, double work, std::span<const PortUse> ports,
                           std::span<const std::int32_t> ranks, std::int64_t token) {
  const std::int32_t index =
      add({.token = token, .began = time, .updated = time, .left = work, .ports = ports, .ranks = ranks});
  for (const PortUse& use : ports) {
    ports_[at(use.port)].load += use.load;
    ports_[at(use.port)].flows.push_back(index);
  }
  if (overlap_ != 1) {
    for (const std::int32_t rank : ranks) ranks_[at(rank)].transfers.push_back(index);
  }
  rerate(time, index);
  rerate_around(time, flows_[at(index)]);
}

bool Flows::end(const Event& event, Ended& ended) {
  const auto index = static_cast<std::int32_t>(event.key / 4);
  Flow& flow = flows_[at(index)];
  if (!flow.alive || flow.end != event.time) return false;
  flow.alive = false;
  ended = {flow.token, flow.began};
  const Flow over = flow;
  unused_.push_back(index);
  if (over.computes >= 0) {
    ranks_[at(over.computes)].compute = -1;
    rerate_transfers_of(event.time, over.computes);
    return true;
  }
  for (const PortUse& use : over.ports) {
    Port& port = ports_[at(use.port)];
    drop(port.flows, index);
    // Sums of loads that differ in size would leave a rest behind.
    port.load = port.flows.empty() ? 0.0 : port.load - use.load;
  }
  if (overlap_ != 1) {
    for (const std::int32_t rank : over.ranks) drop(ranks_[at(rank)].transfers, index);
  }
  rerate_around(event.time, over);
  return true;
}

}  // namespace millrace::sim
