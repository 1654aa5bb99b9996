// Channels of messages between this rank and its peers.
#include "runtime/exchange.h"

#include <algorithm>
#include <cstring>

#include "graph/footprint.h"

namespace millrace::runtime {

std::int64_t bytes_per_row(const Tensor& tensor, kernels::Precision precision) {
  return tensor_bytes(tensor, kernels::carried_bytes(precision)).value();
}

namespace {

// By transfer: its send stands before the norm that validates the round.
std::vector<bool> sent_before_valid(const Program& program) {
  std::vector<bool> early(program.transfers.size(), false);
  for (const RankProgram& rank : program.ranks) {
    for (const Instruction& at : rank.instructions) {
      if (!program.post_validation || at.kind == InstructionKind::reduce_norm) break;
      if (at.transfer >= 0) early[static_cast<std::size_t>(at.transfer)] = true;
    }
  }
  return early;
}

std::size_t buffers_of(const MessageChannel& channel, int rank) {
  return static_cast<std::size_t>(channel.sender == rank ? channel.send_buffers : channel.receive_buffers);
}

}  // namespace

std::int64_t buffer_bytes(const MessageChannel& channel, int rank, const Graph& graph, kernels::Precision precision) {
  const std::int64_t each = channel.rows * bytes_per_row(graph.tensor(channel.tensor), precision);
  return each * static_cast<std::int64_t>(buffers_of(channel, rank));
}

Exchange::Exchange(const Graph& graph, const Program& program, int rank, kernels::Precision precision,
                   comm::Transport& transport, kernels::Storage storage)
    : program_(program), storage_(storage), transport_(transport) {
  row_bytes_.resize(program.transfers.size());
  channel_of_.assign(program.transfers.size(), -1);
  for (const MessageChannel& planned : message_channels(program)) {
    if (planned.sender != rank && planned.receiver != rank) continue;
    const auto index = static_cast<std::int32_t>(channels_.size());
    Channel& channel = channels_.emplace_back();
    if (planned.receiver == rank) receiving_.push_back(index);
    const std::int64_t row_bytes = bytes_per_row(graph.tensor(planned.tensor), precision);
    for (const std::int32_t transfer : planned.transfers) {
      row_bytes_[static_cast<std::size_t>(transfer)] = row_bytes;
      channel_of_[static_cast<std::size_t>(transfer)] = index;
    }
    channel.capacity = planned.rows * row_bytes;
    channel.buffers.resize(buffers_of(planned, rank));
    for (Buffer& buffer : channel.buffers) {
      if (storage == kernels::Storage::none) continue;
      // A receive may be read where it was sent from: its buffer takes no memory before it is written.
      buffer.data = planned.sender == rank
                        ? transport.allocate(channel.capacity)
                        : std::make_shared_for_overwrite<std::byte[]>(static_cast<std::size_t>(channel.capacity));
    }
  }
  const std::vector<bool> early = sent_before_valid(program);
  for (const Instruction& at : program.ranks[static_cast<std::size_t>(rank)].instructions) {
    if (at.transfer < 0) continue;
    channel_of(at.transfer).listed.push_back({at.transfer, at.lag, early[static_cast<std::size_t>(at.transfer)]});
  }
  for (Channel& channel : channels_) channel.transfers.reserve(channel.listed.size());
}

std::int64_t Exchange::transfer_bytes(std::int32_t transfer) const {
  const auto id = static_cast<std::size_t>(transfer);
  return program_.transfers[id].rows.size() * row_bytes_[id];
}

std::int64_t Exchange::buffer_bytes() const {
  std::int64_t bytes = 0;
  for (const Channel& channel : channels_)
    bytes += channel.capacity * static_cast<std::int64_t>(channel.buffers.size());
  return bytes;
}

void Exchange::begin(std::int64_t round, std::int64_t begun, bool validates) {
  for (const std::int32_t index : receiving_) {
    Channel& channel = channels_[static_cast<std::size_t>(index)];
    channel.transfers.clear();
    channel.limit = 0;
    for (const Listed& listed : channel.listed) {
      const std::int64_t iteration = round - listed.lag;
      if (iteration < 0 || iteration >= begun) continue;
      channel.transfers.push_back(listed.transfer);
      if (!validates || listed.early) channel.limit = channel.transfers.size();
    }
    channel.posted = 0;
    channel.received = 0;
    post_first(channel);
  }
}

void Exchange::post_first(Channel& channel) {
  while (channel.posted < std::min(channel.received + channel.buffers.size(), channel.limit)) post(channel);
}

void Exchange::go_on() {
  for (const std::int32_t index : receiving_) {
    Channel& channel = channels_[static_cast<std::size_t>(index)];
    channel.limit = channel.transfers.size();
    post_first(channel);
  }
}

void Exchange::discard(comm::WaitObserver& observer) {
  for (const std::int32_t index : receiving_) {
    Channel& channel = channels_[static_cast<std::size_t>(index)];
    while (channel.received < channel.limit) {
      const std::int32_t transfer = channel.transfers[channel.received];
      receive(transfer, observer);
      release(transfer);
    }
  }
}

Exchange::Channel& Exchange::channel_of(std::int32_t transfer) {
  return channels_[static_cast<std::size_t>(channel_of_[static_cast<std::size_t>(transfer)])];
}

void Exchange::post(Channel& channel) {
  const std::int32_t transfer = channel.transfers[channel.posted];
  const Transfer& t = program_.transfers[static_cast<std::size_t>(transfer)];
  // The ring has one buffer more than the window, so the buffer of receive k is free again when k + window + 1 is
  // posted.
  Buffer& buffer = channel.buffers[channel.posted % channel.buffers.size()];
  const auto bytes = static_cast<std::size_t>(transfer_bytes(transfer));
  buffer.ticket = transport_.receive({buffer.data.get(), bytes}, t.sender, t.tag);
  ++channel.posted;
}

const void* Exchange::receive(std::int32_t transfer, comm::WaitObserver& observer) {
  Channel& channel = channel_of(transfer);
  Buffer& buffer = channel.buffers[channel.received % channel.buffers.size()];
  return transport_.wait_in_place(buffer.ticket, buffer.data.get(), &observer);
}

void Exchange::release(std::int32_t transfer) {
  Channel& channel = channel_of(transfer);
  Buffer& buffer = channel.buffers[channel.received % channel.buffers.size()];
  transport_.taken(buffer.ticket);
  buffer.ticket = comm::kNoTicket;
  ++channel.received;
  if (channel.posted < channel.limit) post(channel);
}

void Exchange::make_room(std::int32_t transfer, comm::WaitObserver& observer) {
  Channel& channel = channel_of(transfer);
  Buffer& buffer = channel.buffers[channel.next];
  if (buffer.ticket == comm::kNoTicket) return;
  transport_.wait(buffer.ticket, &observer);
  buffer.ticket = comm::kNoTicket;
}

void Exchange::send(std::int32_t transfer, const void* data) {
  const Transfer& t = program_.transfers[static_cast<std::size_t>(transfer)];
  Channel& channel = channel_of(transfer);
  Buffer& buffer = channel.buffers[channel.next];
  channel.next = (channel.next + 1) % channel.buffers.size();
  const auto bytes = static_cast<std::size_t>(transfer_bytes(transfer));
  if (storage_ == kernels::Storage::real) std::memcpy(buffer.data.get(), data, bytes);
  buffer.ticket = transport_.send({buffer.data.get(), bytes}, t.receiver, t.tag);
}

void Exchange::drain(comm::WaitObserver& observer) {
  for (Channel& channel : channels_) {
    for (Buffer& buffer : channel.buffers) {
      if (buffer.ticket == comm::kNoTicket) continue;
      transport_.wait(buffer.ticket, &observer);
      buffer.ticket = comm::kNoTicket;
    }
  }
}

}  // namespace millrace::runtime
