// Headers that carry model time, and the channels of one rank.
#include "comm/emulated/emulated_transport.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/even_parts.h"
#include "base/hash.h"

namespace millrace::comm {
namespace {

constexpr std::chrono::microseconds kModelNap{100};
constexpr std::size_t kOut = 0, kIn = 1;
constexpr double kNothing = -0.0;  // x + -0 has the bits of x, for every x
constexpr std::size_t kFacts = 2;  // of each member of a sum: its time and its size

struct Header {
  std::int64_t bytes = 0;    // modelled
  std::int64_t carried = 0;  // behind the header
  double sent = 0;           // model time
  std::uint64_t checksum = 0;
};

std::int64_t carried_bytes(const void* data, std::int64_t bytes) {
  return data != nullptr ? bytes : std::min(bytes, EmulatedTransport::kPayload);
}

template <class Real>
void widen(const void* data, std::int64_t count, std::vector<double>& into) {
  const auto* from = static_cast<const Real*>(data);
  for (std::int64_t i = 0; i < count; ++i) into.push_back(static_cast<double>(from[i]));
}

template <class Real>
void narrow(std::span<const double> from, void* data) {
  auto* to = static_cast<Real*>(data);
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = static_cast<Real>(from[i]);
}

[[noreturn]] void wrong(const std::string& what) { throw Error(ExitCode::internal, "emulated network: " + what); }

}  // namespace

EmulatedTransport::EmulatedTransport(Transport& inner, VirtualClock& clock, LinkModel links)
    : inner_(inner),
      clock_(clock),
      links_(std::move(links)),
      collectives_(inner, links_.collective),
      pattern_(static_cast<std::size_t>(kPayload)) {
  for (std::size_t i = 0; i < pattern_.size(); ++i) pattern_[i] = static_cast<std::byte>(i % 251);
  clock_.set_errand([this] { return look_after_sums(); });
}

EmulatedTransport::~EmulatedTransport() { clock_.set_errand(nullptr); }

Ticket EmulatedTransport::open(Kind kind) {
  if (free_.empty()) {
    free_.push_back(static_cast<Ticket>(operations_.size()));
    operations_.emplace_back();
  }
  const Ticket ticket = free_.back();
  free_.pop_back();
  Operation& operation = at(ticket);
  operation.kind = kind;
  operation.stage = Stage::flying;
  return ticket;
}

void EmulatedTransport::close(Ticket ticket) {
  at(ticket).kind = Kind::none;
  free_.push_back(ticket);
}

Ticket EmulatedTransport::send(std::span<const std::byte> data, int peer, int tag) {
  const Ticket ticket = open(Kind::send);
  Operation& operation = at(ticket);
  const auto bytes = static_cast<std::int64_t>(data.size());
  const auto carried = static_cast<std::size_t>(carried_bytes(data.data(), bytes));
  const std::byte* payload = data.data() != nullptr ? data.data() : pattern_.data();

  double& channel = channels_[links_.half_duplex ? kIn : kOut];
  const double start = std::max(clock_.now().value(), channel);
  channel = start + (links_.message(Bytes(bytes), rank(), peer) - links_.message(Bytes(0), rank(), peer)).value();

  const Header header{bytes, static_cast<std::int64_t>(carried), start, hash64({payload, carried})};
  operation.buffer.resize(sizeof(Header) + carried);
  std::memcpy(operation.buffer.data(), &header, sizeof(Header));
  if (carried > 0) std::memcpy(operation.buffer.data() + sizeof(Header), payload, carried);
  operation.inner = inner_.send(operation.buffer, peer, tag);
  bytes_sent_ += bytes;
  return ticket;
}

Ticket EmulatedTransport::receive(std::span<std::byte> data, int peer, int tag) {
  const Ticket ticket = open(Kind::receive);
  Operation& operation = at(ticket);
  operation.peer = peer;
  operation.bytes = static_cast<std::int64_t>(data.size());
  operation.come = clock_.now().value();
  operation.data = data.data();
  const auto carried = static_cast<std::size_t>(carried_bytes(data.data(), operation.bytes));
  operation.buffer.resize(sizeof(Header) + carried);
  operation.inner = inner_.receive(operation.buffer, peer, tag);
  messages_.push_back(ticket);
  bytes_received_ += operation.bytes;
  return ticket;
}

GroupId EmulatedTransport::group(std::span<const int> ranks) {
  const GroupId id = inner_.group(ranks);
  if (groups_.size() <= static_cast<std::size_t>(id)) groups_.resize(static_cast<std::size_t>(id) + 1);
  Group& group = groups_[static_cast<std::size_t>(id)];
  group.ranks.assign(ranks.begin(), ranks.end());
  group.place = static_cast<std::size_t>(std::find(ranks.begin(), ranks.end(), rank()) - ranks.begin());
  return id;
}

Ticket EmulatedTransport::all_reduce(GroupId group, void* data, std::int64_t count, Element element) {
  return start_sum(group, data, count, element, links_.all_reduce, false);
}

Ticket EmulatedTransport::reduce_scatter(GroupId group, void* data, std::int64_t count, Element element) {
  return start_sum(group, data, count, element, links_.reduce_scatter, false);
}

Ticket EmulatedTransport::all_gather(GroupId group, void* data, std::int64_t count, Element element) {
  return start_sum(group, data, count, element, links_.all_gather, true);
}

Ticket EmulatedTransport::start_sum(GroupId group, void* data, std::int64_t count, Element element,
                                    const LinkModel::Collective& model, bool gathers) {
  const Ticket ticket = open(Kind::sum);
  Operation& operation = at(ticket);
  operation.stage = Stage::queued;
  operation.group = group;
  operation.data = data;
  operation.count = count;
  operation.element = element;
  operation.model = &model;
  operation.gathers = gathers;
  operation.bytes = count * element_bytes(element);
  operation.come = clock_.now().value();
  sums_.push_back(ticket);
  bytes_sent_ += operation.bytes;
  bytes_received_ += operation.bytes;
  look_after_sums();
  return ticket;
}

Ticket EmulatedTransport::model_collective(Collective kind, std::int64_t bytes, std::span<const int> ranks) {
  const Ticket ticket = open(Kind::collective);
  at(ticket).number = collectives_.start(kind, bytes, ranks, clock_.now());
  bytes_sent_ += bytes;
  bytes_received_ += bytes;
  return ticket;
}

// Each member tells when it can begin, which it knows once its sums with other members are over; those with the same
// members follow each other. So a sum is handed on when all before it that are still open have its group.
bool EmulatedTransport::look_after_sums() {
  while (!sums_.empty()) {
    Operation& oldest = at(sums_.front());
    if (oldest.stage != Stage::flying || !inner_.test(oldest.inner)) break;
    sums_.pop_front();
    settle(oldest);
  }
  for (const Ticket ticket : sums_) {
    Operation& sum = at(ticket);
    if (sum.group != at(sums_.front()).group) return true;
    if (sum.stage == Stage::queued) issue(sum);
  }
  return false;
}

void EmulatedTransport::issue(Operation& sum) {
  const Group& group = groups_[static_cast<std::size_t>(sum.group)];
  const std::size_t members = group.ranks.size();
  sum.sums.assign(members * kFacts, 0.0);
  sum.sums[group.place * kFacts] = std::max(sum.come, sum_channel_);
  sum.sums[group.place * kFacts + 1] = static_cast<double>(sum.bytes);
  if (sum.data == nullptr) {
    const std::int64_t carried = carried_bytes(nullptr, sum.bytes) / 8;
    sum.sums.insert(sum.sums.end(), static_cast<std::size_t>(carried), static_cast<double>(group.place + 1));
  } else if (sum.element == Element::float64) {
    widen<double>(sum.data, sum.count, sum.sums);
  } else {
    widen<float>(sum.data, sum.count, sum.sums);
  }
  if (sum.gathers && sum.data != nullptr) {
    const ElementRange own =
        even_part(sum.count, static_cast<std::int64_t>(members), static_cast<std::int64_t>(group.place));
    const auto first = sum.sums.begin() + static_cast<std::ptrdiff_t>(members * kFacts);
    std::fill(first, first + own.begin, kNothing);
    std::fill(first + own.end, sum.sums.end(), kNothing);
  }
  sum.inner =
      inner_.all_reduce(sum.group, sum.sums.data(), static_cast<std::int64_t>(sum.sums.size()), Element::float64);
  sum.stage = Stage::flying;
}

void EmulatedTransport::settle(Operation& sum) {
  Group& group = groups_[static_cast<std::size_t>(sum.group)];
  const std::size_t members = group.ranks.size();
  double begin = group.free;
  for (std::size_t m = 0; m < members; ++m) {
    begin = std::max(begin, sum.sums[m * kFacts]);
    if (sum.sums[m * kFacts + 1] != static_cast<double>(sum.bytes)) {
      wrong(fmt::format("rank {} sums {} bytes where rank {} sums {}", rank(), sum.bytes, group.ranks[m],
                        sum.sums[m * kFacts + 1]));
    }
  }
  const std::span<const double> payload = std::span(sum.sums).subspan(members * kFacts);
  if (sum.data == nullptr) {
    const double expected = static_cast<double>(members * (members + 1)) / 2;
    if (!std::all_of(payload.begin(), payload.end(), [&](double value) { return value == expected; })) {
      wrong(fmt::format("a sum over {} ranks did not add up on rank {}", members, rank()));
    }
  } else if (sum.element == Element::float64) {
    narrow<double>(payload, sum.data);
  } else {
    narrow<float>(payload, sum.data);
  }
  sum.end = begin + (*sum.model)(Bytes(sum.bytes), group.ranks).value();
  group.free = sum_channel_ = sum.end;
  sum.stage = Stage::settled;
}

void EmulatedTransport::look_for_messages() {
  for (const Ticket ticket : messages_) {
    Operation& message = at(ticket);
    if (message.stage != Stage::flying || !inner_.test(message.inner)) continue;
    read_header(message);
    message.stage = Stage::arrived;
  }
}

void EmulatedTransport::read_header(Operation& message) {
  Header header;
  std::memcpy(&header, message.buffer.data(), sizeof(Header));
  const auto carried = static_cast<std::size_t>(carried_bytes(message.data, message.bytes));
  const std::byte* payload = message.buffer.data() + sizeof(Header);
  if (header.bytes != message.bytes || header.carried != static_cast<std::int64_t>(carried) ||
      header.checksum != hash64({payload, carried})) {
    wrong(
        fmt::format("rank {} received from rank {} a message of {} bytes, {} of them carried, with {} checksum; "
                    "expected {} and {}",
                    rank(), message.peer, header.bytes, header.carried,
                    header.checksum == hash64({payload, carried}) ? "a right" : "a wrong", message.bytes, carried));
  }
  if (message.data != nullptr && carried > 0) std::memcpy(message.data, payload, carried);
  message.come = std::max(message.come, header.sent);
}

// Messages take the channel in the order in which they could start.
void EmulatedTransport::settle_messages_until(const Operation& message) {
  std::vector<Ticket> arrived;
  for (const Ticket ticket : messages_) {
    if (at(ticket).stage == Stage::arrived && at(ticket).come <= message.come) arrived.push_back(ticket);
  }
  std::stable_sort(arrived.begin(), arrived.end(), [this](Ticket a, Ticket b) { return at(a).come < at(b).come; });
  for (const Ticket ticket : arrived) settle_message(at(ticket));
  std::erase_if(messages_, [this](Ticket ticket) { return at(ticket).stage == Stage::settled; });
}

void EmulatedTransport::settle_message(Operation& message) {
  const Seconds latency = links_.message(Bytes(0), message.peer, rank());
  const Seconds alone = links_.message(Bytes(message.bytes), message.peer, rank());
  const double start = std::max(message.come, channels_[kIn]);
  channels_[kIn] = start + (alone - latency).value();
  message.end = start + alone.value();
  message.stage = Stage::settled;
}

// Whether the end of the operation is known; that of a send is when the inner transport has matched it.
bool EmulatedTransport::advance(Ticket ticket) {
  Operation& operation = at(ticket);
  look_after_sums();
  if (operation.kind == Kind::receive && operation.stage != Stage::settled) {
    look_for_messages();
    if (operation.stage == Stage::arrived) settle_messages_until(operation);
  }
  if (operation.kind == Kind::collective && operation.stage != Stage::settled) {
    const auto end = collectives_.end_of(operation.number);
    if (!end) return false;
    operation.end = end->value();
    operation.stage = Stage::settled;
  }
  if (operation.kind == Kind::send && operation.stage == Stage::flying && inner_.test(operation.inner)) {
    operation.stage = Stage::settled;
    operation.end = 0;
  }
  return operation.stage == Stage::settled;
}

bool EmulatedTransport::test(Ticket ticket) {
  if (!advance(ticket) || !clock_.is_over(Seconds(at(ticket).end))) return false;
  clock_.reach(Seconds(at(ticket).end));
  close(ticket);
  return true;
}

void EmulatedTransport::wait(Ticket ticket, WaitObserver* observer) {
  for (bool first = true; !advance(ticket); first = false) {
    if (first && observer != nullptr) observer->waiting();
    std::this_thread::sleep_for(kModelNap);
  }
  if (observer != nullptr) observer->finished();
  clock_.reach(Seconds(at(ticket).end));
  close(ticket);
}

}  // namespace millrace::comm
