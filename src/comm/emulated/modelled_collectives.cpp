// Headers between all pairs of members; every member comes to the same end from the same times.
#include "comm/emulated/modelled_collectives.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/hash.h"

namespace millrace::comm {
namespace {

constexpr std::int64_t kMostCarried = std::int64_t{64} << 10;
constexpr std::int64_t kHighestTag = std::int64_t{1} << 30;

struct Arrival {
  std::int64_t kind = 0;
  std::int64_t bytes = 0;
  double come = 0;
  std::uint64_t checksum = 0;
};

std::size_t buffer_size(std::int64_t bytes, std::size_t members) {
  return sizeof(Arrival) + static_cast<std::size_t>(std::min(bytes, kMostCarried)) / members;
}

std::span<const std::byte> payload(const std::vector<std::byte>& buffer) {
  return std::span(buffer).subspan(sizeof(Arrival));
}

}  // namespace

std::int64_t ModelledCollectives::start(Collective kind, std::int64_t bytes, std::span<const int> ranks, Seconds now) {
  const int tag = static_cast<int>(std::min(inner_.largest_tag(), kHighestTag));
  Flying& own = flying_.emplace_back();
  own.kind = kind;
  own.bytes = bytes;
  own.ranks.assign(ranks.begin(), ranks.end());
  own.come = std::max(now, free_);
  for (const int peer : ranks) {
    if (peer == inner_.rank()) continue;
    Message& message = own.received.emplace_back();
    message.buffer.resize(buffer_size(bytes, ranks.size()));
    message.ticket = inner_.receive(message.buffer, peer, tag);
  }
  for (const int peer : ranks) {
    if (peer == inner_.rank()) continue;
    Message& message = own.sent.emplace_back();
    message.buffer.assign(buffer_size(bytes, ranks.size()), static_cast<std::byte>(peer % 251));
    const Arrival header{static_cast<std::int64_t>(kind), bytes, own.come.value(), hash64(payload(message.buffer))};
    std::memcpy(message.buffer.data(), &header, sizeof(Arrival));
    message.ticket = inner_.send(message.buffer, peer, tag);
  }
  return settled_ + static_cast<std::int64_t>(flying_.size()) - 1;
}

bool ModelledCollectives::is_here(Flying& collective) {
  bool all = true;
  for (auto* messages : {&collective.sent, &collective.received}) {
    for (Message& message : *messages) {
      if (message.ticket != kNoTicket && inner_.test(message.ticket)) message.ticket = kNoTicket;
      all = all && message.ticket == kNoTicket;
    }
  }
  return all;
}

Seconds ModelledCollectives::latest(const Flying& collective) const {
  Seconds come = collective.come;
  for (const Message& message : collective.received) {
    Arrival header;
    std::memcpy(&header, message.buffer.data(), sizeof(Arrival));
    if (header.kind != static_cast<std::int64_t>(collective.kind) || header.bytes != collective.bytes ||
        header.checksum != hash64(payload(message.buffer))) {
      throw Error(
          ExitCode::internal,
          fmt::format("emulated network: rank {} takes part in collective {} of {} bytes where another member "
                      "takes part in {} of {}, or what came is damaged",
                      inner_.rank(), static_cast<int>(collective.kind), collective.bytes, header.kind, header.bytes));
    }
    come = std::max(come, Seconds(header.come));
  }
  return come;
}

std::optional<Seconds> ModelledCollectives::end_of(std::int64_t number) {
  while (!flying_.empty() && is_here(flying_.front())) {
    const Flying& oldest = flying_.front();
    free_ = std::max(free_, latest(oldest)) + time_(oldest.kind, Bytes(oldest.bytes), oldest.ranks);
    ends_.emplace(settled_++, free_);
    flying_.pop_front();
  }
  const auto answer = ends_.extract(number);
  return answer.empty() ? std::nullopt : std::optional(answer.mapped());
}

}  // namespace millrace::comm
