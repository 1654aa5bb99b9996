// Messages and sums between real processes: order, pieces, groups.
#include "comm/mpi/mpi_transport.h"

#include <cstring>
#include <numeric>

#include <gtest/gtest.h>

#include "base/even_parts.h"

namespace millrace::comm {
namespace {

std::span<const std::byte> bytes_of(const std::vector<double>& v) { return std::as_bytes(std::span(v)); }
std::span<std::byte> bytes_of(std::vector<double>& v) { return std::as_writable_bytes(std::span(v)); }

TEST(MpiTransport, RingOfMessagesLargerThanTheEagerLimitDoesNotBlock) {
  // Every rank sends first: blocking sends would hang from 4,096 bytes on (ENVIRONMENT).
  MpiTransport transport(MPI_COMM_WORLD);
  const int next = (transport.rank() + 1) % transport.size();
  const int previous = (transport.rank() + transport.size() - 1) % transport.size();
  std::vector<double> out(100000, transport.rank()), in(out.size(), -1);
  const Ticket sent = transport.send(bytes_of(std::as_const(out)), next, 7);
  transport.wait(transport.receive(bytes_of(in), previous, 7), nullptr);
  transport.wait(sent, nullptr);
  EXPECT_EQ(in, std::vector<double>(in.size(), previous));
}

TEST(MpiTransport, PiecesGiveTheSameSumAsOneOperation) {
  MpiTransport whole(MPI_COMM_WORLD);
  MpiTransport pieces(MPI_COMM_WORLD, {.largest_message_bytes = 1000});
  std::vector<int> all(static_cast<std::size_t>(whole.size()));
  std::iota(all.begin(), all.end(), 0);
  std::vector<double> a(1234), b;
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<double>(i) * (whole.rank() + 1);
  b = a;
  whole.wait(whole.all_reduce(whole.group(all), a.data(), static_cast<std::int64_t>(a.size()), Element::float64),
             nullptr);
  pieces.wait(pieces.all_reduce(pieces.group(all), b.data(), static_cast<std::int64_t>(b.size()), Element::float64),
              nullptr);
  EXPECT_EQ(a, b);
  const int n = whole.size();
  EXPECT_EQ(a[10], 10.0 * n * (n + 1) / 2);
}

TEST(MpiTransport, MessageInPiecesArrivesWhole) {
  MpiTransport transport(MPI_COMM_WORLD, {.largest_message_bytes = 64});
  std::vector<double> data(1000);
  if (transport.rank() == 0) {
    std::iota(data.begin(), data.end(), 0.0);
    transport.wait(transport.send(bytes_of(std::as_const(data)), 1, 1), nullptr);
  } else if (transport.rank() == 1) {
    transport.wait(transport.receive(bytes_of(data), 0, 1), nullptr);
    for (std::size_t i = 0; i < data.size(); ++i) ASSERT_EQ(data[i], static_cast<double>(i));
  }
}

TEST(MpiTransport, GroupsReduceOverTheirMembersOnly) {
  MpiTransport transport(MPI_COMM_WORLD);
  const std::vector<int> pair{0, 2};
  double value = transport.rank() + 1;
  if (transport.rank() != 1) {
    const GroupId group = transport.group(pair);
    EXPECT_EQ(group, transport.group(pair));
    transport.wait(transport.all_reduce(group, &value, 1, Element::float64), nullptr);
    EXPECT_EQ(value, 4.0);
  } else {
    EXPECT_EQ(value, 2.0);
  }
}

// Sizes that no number of ranks divides, fewer elements than ranks, pieces and none.
TEST(MpiTransport, HalvesOfASumAreTheSum) {
  for (const std::int64_t limit : {std::int64_t{1} << 26, std::int64_t{56}}) {
    MpiTransport transport(MPI_COMM_WORLD, {.largest_message_bytes = limit});
    const int n = transport.size(), rank = transport.rank();
    std::vector<int> all(static_cast<std::size_t>(n));
    std::iota(all.begin(), all.end(), 0);
    const GroupId group = transport.group(all);
    for (const std::int64_t count : {0, 1, 2, 101}) {
      std::vector<float> data(static_cast<std::size_t>(count));
      for (std::size_t i = 0; i < data.size(); ++i)
        data[i] = static_cast<float>((i + 1) * static_cast<std::size_t>(rank + 1));
      transport.wait(transport.reduce_scatter(group, data.data(), count, Element::float32), nullptr);
      const ElementRange own = even_part(count, n, rank);
      const auto sum = [&](std::size_t i) {
        return static_cast<float>((i + 1) * static_cast<std::size_t>(n * (n + 1) / 2));
      };
      for (std::size_t i = 0; i < data.size(); ++i) {
        const bool mine = static_cast<std::int64_t>(i) >= own.begin && static_cast<std::int64_t>(i) < own.end;
        if (mine) {
          EXPECT_EQ(data[i], sum(i));
        } else {
          data[i] = -1;
        }
      }
      transport.wait(transport.all_gather(group, data.data(), count, Element::float32), nullptr);
      for (std::size_t i = 0; i < data.size(); ++i) EXPECT_EQ(data[i], sum(i)) << count << " at " << i;
    }
  }
}

TEST(MpiTransport, SameTagKeepsTheOrderOfSends) {
  MpiTransport transport(MPI_COMM_WORLD);
  constexpr int kCount = 50;
  std::vector<std::vector<double>> buffers(kCount, std::vector<double>(1));
  std::vector<Ticket> tickets;
  for (int i = 0; i < kCount && transport.rank() < 2; ++i) {
    auto& buffer = buffers[static_cast<std::size_t>(i)];
    if (transport.rank() == 0) buffer[0] = i;
    tickets.push_back(transport.rank() == 0 ? transport.send(bytes_of(std::as_const(buffer)), 1, 3)
                                            : transport.receive(bytes_of(buffer), 0, 3));
  }
  for (const Ticket ticket : tickets) transport.wait(ticket, nullptr);
  for (int i = 0; i < kCount && transport.rank() < 2; ++i) EXPECT_EQ(buffers[static_cast<std::size_t>(i)][0], i);
}

}  // namespace
}  // namespace millrace::comm
