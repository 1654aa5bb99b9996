// Sums by the transport's all-reduce, everything else by messages between pairs.
#include "runtime/part_group.h"

#include <algorithm>

namespace millrace::runtime {
namespace {

comm::GroupId group_of(std::vector<int> ranks, comm::Transport& transport) {
  std::sort(ranks.begin(), ranks.end());
  return transport.group(ranks);
}

}  // namespace

std::unique_ptr<PartGroup> PartGroup::make(const ProgramStage& stage, int rank, comm::Transport* transport,
                                           comm::WaitObserver* observer, Clock clock) {
  if (stage.parts == nullptr) return nullptr;
  const auto place = std::find(stage.ranks.begin(), stage.ranks.end(), rank);
  const auto at = static_cast<std::size_t>(place - stage.ranks.begin());
  const auto size = static_cast<std::size_t>(stage.tensor_parallel);
  const auto first = stage.ranks.begin() + static_cast<std::ptrdiff_t>(at / size * size);
  return std::unique_ptr<PartGroup>(new PartGroup({first, first + static_cast<std::ptrdiff_t>(size)},
                                                  static_cast<int>(at % size), transport, observer, std::move(clock)));
}

PartGroup::PartGroup(std::vector<int> ranks, int index, comm::Transport* transport, comm::WaitObserver* observer,
                     Clock clock)
    : ranks_(std::move(ranks)),
      index_(index),
      transport_(transport),
      observer_(observer),
      clock_(std::move(clock)),
      group_(transport != nullptr ? group_of(ranks_, *transport) : comm::GroupId{}) {}

void PartGroup::sum(void* values, std::int64_t count, kernels::Precision precision, Tickets& tickets) {
  const auto element = precision == kernels::Precision::fp64 ? comm::Element::float64 : comm::Element::float32;
  tickets.push_back(transport_->all_reduce(group_, values, count, element));
}

// The tag above those of transfers (app::lowering_options): messages of one pair arrive in the order of their sends.
void PartGroup::exchange(std::span<const std::vector<std::byte>> to, std::span<std::vector<std::byte>> from,
                         Tickets& tickets) {
  const int tag = static_cast<int>(std::min<std::int64_t>(transport_->largest_tag(), 1 << 30));
  for (std::size_t peer = 0; peer < ranks_.size(); ++peer) {
    if (static_cast<int>(peer) == index_ || from[peer].empty()) continue;
    tickets.push_back(transport_->receive(from[peer], ranks_[peer], tag));
  }
  for (std::size_t peer = 0; peer < ranks_.size(); ++peer) {
    if (static_cast<int>(peer) == index_ || to[peer].empty()) continue;
    tickets.push_back(transport_->send(to[peer], ranks_[peer], tag));
  }
}

void PartGroup::model(comm::Collective kind, std::int64_t bytes, Tickets& tickets) {
  tickets.push_back(transport_->model_collective(kind, bytes, ranks_));
}

void PartGroup::wait(Tickets& tickets) {
  const Seconds start = clock_();
  for (const comm::Ticket ticket : tickets) transport_->wait(ticket, observer_);
  tickets.clear();
  waited_ += clock_() - start;
}

}  // namespace millrace::runtime
