// Round trips and sums as training makes them, timed.
#include "probe/link_speed.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <numeric>

#include "probe/statistics.h"

namespace millrace::probe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Bytes kSmall = 8_B;
constexpr Bytes kLarge = 1_MiB;
constexpr int kWarmUp = 2;
constexpr int kRepetitions = 15;

template <class Work>
Seconds median_of(Work work) {
  for (int i = 0; i < kWarmUp; ++i) work();
  std::vector<double> seconds;
  for (int i = 0; i < kRepetitions; ++i) {
    const Clock::time_point start = Clock::now();
    work();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  return summary(std::move(seconds)).median;
}

// From a tensor of one rank into a tensor of the other: the copies at its ends belong to a message
// (runtime/exchange.h).
class Messages {
 public:
  Messages(comm::Transport& transport, int peer, std::int64_t bytes)
      : transport_(transport),
        peer_(peer),
        tensor_(static_cast<std::size_t>(bytes)),
        received_(tensor_.size()),
        sent_(transport.allocate(bytes)) {}

  void send() {
    std::memcpy(sent_.get(), tensor_.data(), tensor_.size());
    sending_ = transport_.send({sent_.get(), tensor_.size()}, peer_, 0);
  }
  void receive() {
    const comm::Ticket ticket = transport_.receive(received_, peer_, 0);
    std::memcpy(tensor_.data(), transport_.wait_in_place(ticket, received_.data(), nullptr), tensor_.size());
    transport_.taken(ticket);
  }
  void end_send() { transport_.wait(sending_); }

 private:
  comm::Transport& transport_;
  int peer_;
  std::vector<std::byte> tensor_;
  std::vector<std::byte> received_;
  std::shared_ptr<std::byte[]> sent_;
  comm::Ticket sending_ = comm::kNoTicket;
};

}  // namespace

Seconds measure_message(comm::Transport& transport, int a, int b, Bytes size) {
  const bool begins = transport.rank() == a;
  Messages messages(transport, begins ? b : a, size.value());
  const Seconds round_trip = median_of([&] {
    if (begins) messages.send();
    messages.receive();
    if (!begins) messages.send();
    messages.end_send();
  });
  return round_trip / 2.0;
}

cluster::Link measure_link(comm::Transport& transport, int a, int b) {
  const Seconds latency = measure_message(transport, a, b, kSmall);
  // A large message that looks as fast as a small one says only that the clock is coarse.
  const Seconds carried = std::max(measure_message(transport, a, b, kLarge) - latency, Seconds(1e-9));
  return {BytesPerSecond(static_cast<double>(kLarge.value()) / carried.value()), latency};
}

std::vector<Seconds> measure_all_reduce(comm::Transport& transport, std::span<const Bytes> sizes) {
  std::vector<int> everyone(static_cast<std::size_t>(transport.size()));
  std::iota(everyone.begin(), everyone.end(), 0);
  const comm::GroupId all = transport.group(everyone);
  std::vector<Seconds> times;
  for (const Bytes size : sizes) {
    const auto values = transport.allocate(size.value());  // as gradients are
    const std::int64_t count = size.value() / comm::element_bytes(comm::Element::float32);
    times.push_back(
        median_of([&] { transport.wait(transport.all_reduce(all, values.get(), count, comm::Element::float32)); }));
  }
  return times;
}

}  // namespace millrace::probe
