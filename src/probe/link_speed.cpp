// Round trips and sums, timed.
#include "probe/link_speed.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <numeric>

#include "probe/statistics.h"

namespace millrace::probe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kSmall = 8;
constexpr std::int64_t kLarge = std::int64_t{1} << 20;
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

Seconds one_way(comm::Transport& transport, int a, int b, std::int64_t bytes) {
  std::vector<std::byte> buffer(static_cast<std::size_t>(bytes));
  const int peer = transport.rank() == a ? b : a;
  const Seconds round_trip = median_of([&] {
    const auto send = [&] { transport.wait(transport.send(buffer, peer, 0)); };
    const auto receive = [&] { transport.wait(transport.receive(buffer, peer, 0)); };
    if (transport.rank() == a) {
      send();
      receive();
    } else {
      receive();
      send();
    }
  });
  return round_trip / 2.0;
}

}  // namespace

cluster::Link measure_link(comm::Transport& transport, int a, int b) {
  const Seconds latency = one_way(transport, a, b, kSmall);
  // A large message that looks as fast as a small one says only that the clock is coarse.
  const Seconds carried = std::max(one_way(transport, a, b, kLarge) - latency, Seconds(1e-9));
  return {BytesPerSecond(static_cast<double>(kLarge) / carried.value()), latency};
}

std::vector<Seconds> measure_all_reduce(comm::Transport& transport, std::span<const Bytes> sizes) {
  std::vector<int> everyone(static_cast<std::size_t>(transport.size()));
  std::iota(everyone.begin(), everyone.end(), 0);
  const comm::GroupId all = transport.group(everyone);
  std::vector<Seconds> times;
  for (const Bytes size : sizes) {
    std::vector<float> values(static_cast<std::size_t>(size.value()) / sizeof(float));
    times.push_back(median_of([&] {
      transport.wait(
          transport.all_reduce(all, values.data(), static_cast<std::int64_t>(values.size()), comm::Element::float32));
    }));
  }
  return times;
}

}  // namespace millrace::probe
