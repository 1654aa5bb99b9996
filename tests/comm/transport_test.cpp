// Messages and sums between real processes: order, pieces, groups, whichever way they go.
#include <cstring>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/even_parts.h"
#include "tests/comm/transports.h"

namespace millrace::comm {
namespace {

using testing::options_of;
using testing::Way;

std::span<const std::byte> bytes_of(const std::vector<double>& v) { return std::as_bytes(std::span(v)); }
std::span<std::byte> bytes_of(std::vector<double>& v) { return std::as_writable_bytes(std::span(v)); }

std::vector<int> everyone(const Transport& transport) {
  std::vector<int> all(static_cast<std::size_t>(transport.size()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// Memory that others see, where there is such.
class Block {
 public:
  Block(Transport& transport, std::size_t count)
      : memory_(transport.allocate(static_cast<std::int64_t>(count * sizeof(double)))), count_(count) {}
  double* data() const { return reinterpret_cast<double*>(memory_.get()); }
  std::span<double> values() const { return {data(), count_}; }
  std::span<std::byte> bytes() const { return {memory_.get(), count_ * sizeof(double)}; }

 private:
  std::shared_ptr<std::byte[]> memory_;
  std::size_t count_;
};

class Transports : public ::testing::TestWithParam<Way> {
 protected:
  NodeTransport transport{MPI_COMM_WORLD, options_of(GetParam())};
  int next = (transport.rank() + 1) % transport.size();
  int previous = (transport.rank() + transport.size() - 1) % transport.size();
};

INSTANTIATE_TEST_SUITE_P(By, Transports, ::testing::Values(Way::mpi, Way::memory, Way::both),
                         [](const auto& info) { return testing::name(info.param); });

TEST_P(Transports, SeeTheRanksOfTheirNode) {
  const int last = transport.rank() == 2 ? 1 : 2;
  EXPECT_EQ(transport.ranks_of_node(), GetParam() == Way::mpi ? 1 : GetParam() == Way::memory ? 3 : last);
}

TEST_P(Transports, RingOfMessagesLargerThanTheEagerLimitDoesNotBlock) {
  // Every rank sends first: blocking sends would hang from 4,096 bytes on (ENVIRONMENT).
  std::vector<double> out(100000, transport.rank()), in(out.size(), -1);
  const Ticket sent = transport.send(bytes_of(std::as_const(out)), next, 7);
  transport.wait(transport.receive(bytes_of(in), previous, 7), nullptr);
  transport.wait(sent, nullptr);
  EXPECT_EQ(in, std::vector<double>(in.size(), previous));
}

TEST_P(Transports, PiecesGiveTheSameSumAsOneOperation) {
  NodeTransport pieces(MPI_COMM_WORLD, options_of(GetParam(), {.largest_message_bytes = 1000}));
  std::vector<double> a(1234), b;
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<double>(i) * (transport.rank() + 1);
  b = a;
  for (const auto& [way, values] : {std::pair(&transport, &a), std::pair(&pieces, &b)}) {
    const auto count = static_cast<std::int64_t>(values->size());
    way->wait(way->all_reduce(way->group(everyone(*way)), values->data(), count, Element::float64), nullptr);
  }
  EXPECT_EQ(a, b);
  const int n = transport.size();
  EXPECT_EQ(a[10], 10.0 * n * (n + 1) / 2);
}

TEST_P(Transports, MessageInPiecesArrivesWhole) {
  NodeTransport pieces(MPI_COMM_WORLD, options_of(GetParam(), {.largest_message_bytes = 64}));
  std::vector<double> data(1000);
  if (pieces.rank() == 0) {
    std::iota(data.begin(), data.end(), 0.0);
    pieces.wait(pieces.send(bytes_of(std::as_const(data)), 1, 1), nullptr);
  } else if (pieces.rank() == 1) {
    pieces.wait(pieces.receive(bytes_of(data), 0, 1), nullptr);
    for (std::size_t i = 0; i < data.size(); ++i) ASSERT_EQ(data[i], static_cast<double>(i));
  }
}

// Sizes that no number of ranks divides, fewer elements than ranks, pieces and none.
TEST_P(Transports, HalvesOfASumAreTheSum) {
  for (const std::int64_t limit : {std::int64_t{1} << 26, std::int64_t{56}}) {
    NodeTransport pieces(MPI_COMM_WORLD, options_of(GetParam(), {.largest_message_bytes = limit}));
    const int n = pieces.size(), rank = pieces.rank();
    const GroupId group = pieces.group(everyone(pieces));
    for (const std::int64_t count : {0, 1, 2, 101}) {
      std::vector<float> data(static_cast<std::size_t>(count));
      for (std::size_t i = 0; i < data.size(); ++i)
        data[i] = static_cast<float>((i + 1) * static_cast<std::size_t>(rank + 1));
      pieces.wait(pieces.reduce_scatter(group, data.data(), count, Element::float32), nullptr);
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
      pieces.wait(pieces.all_gather(group, data.data(), count, Element::float32), nullptr);
      for (std::size_t i = 0; i < data.size(); ++i) EXPECT_EQ(data[i], sum(i)) << count << " at " << i;
    }
  }
}

TEST_P(Transports, GroupsReduceOverTheirMembersOnly) {
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

// Some lie where the other rank sees them, some are copied there, some are so long that MPI brings them.
TEST_P(Transports, SameTagKeepsTheOrderOfSendsWhereverTheyLie) {
  constexpr int kCount = 50;
  std::vector<Block> blocks;
  std::vector<std::vector<double>> buffers;
  std::vector<Ticket> tickets;
  for (int i = 0; i < kCount; ++i) {
    const std::size_t size = i % 5 == 4 ? 200000 : 10;
    blocks.emplace_back(transport, size);
    buffers.emplace_back(size);
  }
  for (int i = 0; i < kCount && transport.rank() < 2; ++i) {
    std::vector<double>& buffer = buffers[static_cast<std::size_t>(i)];
    const Block& block = blocks[static_cast<std::size_t>(i)];
    if (transport.rank() == 0) {
      const std::span<double> values = i % 2 == 0 ? block.values() : std::span(buffer);
      std::fill(values.begin(), values.end(), i);
      tickets.push_back(transport.send(std::as_bytes(values), 1, 3));
    } else {
      tickets.push_back(transport.receive(bytes_of(buffer), 0, 3));
    }
  }
  for (const Ticket ticket : tickets) transport.wait(ticket, nullptr);
  for (int i = 0; i < kCount && transport.rank() == 1; ++i) {
    const std::vector<double>& buffer = buffers[static_cast<std::size_t>(i)];
    EXPECT_EQ(buffer, std::vector<double>(buffer.size(), i));
  }
}

TEST_P(Transports, MessagesOfTwoTagsAreToldApart) {
  std::vector<double> in(2, -1);
  const double first = 1, second = 2;
  if (transport.rank() == 0) {
    const Ticket a = transport.send(std::as_bytes(std::span(&first, 1)), 1, 1);
    const Ticket b = transport.send(std::as_bytes(std::span(&second, 1)), 1, 2);
    transport.wait(b, nullptr);
    transport.wait(a, nullptr);
  } else if (transport.rank() == 1) {
    transport.wait(transport.receive(std::as_writable_bytes(std::span(&in[1], 1)), 0, 2), nullptr);
    transport.wait(transport.receive(std::as_writable_bytes(std::span(&in[0], 1)), 0, 1), nullptr);
    EXPECT_EQ(in, (std::vector<double>{first, second}));
  }
}

// A rank that computes calls nothing: who waits for its buffers waits for no computation.
TEST_P(Transports, SendEndsOnceItsReceiveIsPosted) {
  const Block out(transport, 100000);
  std::vector<double> in(100000, -1);
  if (transport.rank() == 0) {
    std::fill(out.values().begin(), out.values().end(), 5.0);
    transport.wait(transport.send(out.bytes(), 1, 3), nullptr);
    std::fill(out.values().begin(), out.values().end(), 6.0);
  }
  const Ticket ticket = transport.rank() == 1 ? transport.receive(bytes_of(in), 0, 3) : kNoTicket;
  MPI_Barrier(MPI_COMM_WORLD);
  if (transport.rank() != 1) return;
  EXPECT_EQ(transport.wait_in_place(ticket, reinterpret_cast<const std::byte*>(in.data()), nullptr),
            reinterpret_cast<const std::byte*>(in.data()));
  transport.taken(ticket);
  EXPECT_EQ(in, std::vector<double>(in.size(), 5.0));
}

TEST_P(Transports, MessageOfSharedMemoryIsReadInPlace) {
  const Block out(transport, 1000);
  std::vector<double> in(1000, -1);
  if (transport.rank() == 0) {
    for (int round = 0; round < 3; ++round) {
      std::fill(out.values().begin(), out.values().end(), round);
      transport.wait(transport.send(out.bytes(), 1, 3), nullptr);
    }
  } else if (transport.rank() == 1) {
    for (int round = 0; round < 3; ++round) {
      MPI_Request request = MPI_REQUEST_NULL;
      const auto* buffer = reinterpret_cast<const std::byte*>(in.data());
      MPI_Ibarrier(MPI_COMM_SELF, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      const Ticket ticket = transport.receive(bytes_of(in), 0, 3);
      const auto* data = reinterpret_cast<const double*>(transport.wait_in_place(ticket, buffer, nullptr));
      EXPECT_EQ(std::vector<double>(data, data + 1000), std::vector<double>(1000, round));
      transport.taken(ticket);
    }
  }
}

TEST_P(Transports, SumsMoveWhileNobodyWaits) {
  const Block block(transport, std::size_t{1} << 19);  // 4 MiB: many steps of MPI's progress engine
  std::fill(block.values().begin(), block.values().end(), transport.rank() + 1.0);
  const Ticket sum =
      transport.all_reduce(transport.group(everyone(transport)), block.data(), 1 << 19, Element::float64);
  // Looking adds nothing up. Longer than any machine needs: only a sum that does not move at all fails.
  bool done = false;
  for (int naps = 0; naps < 3000 && !done; ++naps) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    done = transport.test(sum);
  }
  ASSERT_TRUE(done);
  for (const double value : block.values()) ASSERT_EQ(value, 6.0);
}

TEST_P(Transports, AsManySumsAsOneLikesAreInFlight) {
  constexpr int kSums = 200;
  const GroupId group = transport.group(everyone(transport));
  std::vector<float> values(kSums);
  std::vector<Ticket> tickets;
  for (int i = 0; i < kSums; ++i) {
    values[static_cast<std::size_t>(i)] = static_cast<float>(i * (transport.rank() + 1));
    tickets.push_back(transport.all_reduce(group, &values[static_cast<std::size_t>(i)], 1, Element::float32));
  }
  for (int i = kSums - 1; i >= 0; --i) transport.wait(tickets[static_cast<std::size_t>(i)], nullptr);
  for (int i = 0; i < kSums; ++i) EXPECT_EQ(values[static_cast<std::size_t>(i)], static_cast<float>(6 * i));
}

TEST_P(Transports, EmptyMessagesAndSumsEnd) {
  transport.wait(transport.all_reduce(transport.group(everyone(transport)), nullptr, 0, Element::float64), nullptr);
  const Ticket sent = transport.send({}, next, 1);
  transport.wait(transport.receive({}, previous, 1), nullptr);
  transport.wait(sent, nullptr);
}

TEST_P(Transports, MemoryOutlivesTheTransport) {
  std::shared_ptr<std::byte[]> block;
  {
    NodeTransport shorter(MPI_COMM_WORLD, options_of(GetParam()));
    block = shorter.allocate(100000);
  }
  std::memset(block.get(), 1, 100000);
  EXPECT_EQ(block[99999], std::byte{1});
}

// (a + b) + c, whoever adds: 1e16 + 1 is 1e16 in double, so each order has a sum of its own.
TEST(NodeTransport, AddsInTheOrderOfTheRanks) {
  NodeTransport transport(MPI_COMM_WORLD);
  constexpr std::int64_t kCount = 100001;  // several parts, the last one odd
  const Block block(transport, kCount);
  const GroupId group = transport.group(everyone(transport));
  for (int round = 0; round < 20; ++round) {
    const double own[3] = {1e16, 1, -1e16 + round};
    std::fill(block.values().begin(), block.values().end(), own[transport.rank()]);
    transport.wait(transport.all_reduce(group, block.data(), kCount, Element::float64), nullptr);
    const double expected = (own[0] + own[1]) + own[2];
    for (const double value : block.values()) ASSERT_EQ(value, expected) << round;
  }
}

void expect_exchange(NodeTransport& transport, std::size_t count) {
  const Block out(transport, count), sum(transport, 100);
  std::vector<double> in(count, -1);
  std::fill(out.values().begin(), out.values().end(), transport.rank());
  std::fill(sum.values().begin(), sum.values().end(), transport.rank());
  const int next = (transport.rank() + 1) % transport.size();
  const int previous = (transport.rank() + transport.size() - 1) % transport.size();
  const Ticket sent = transport.send(out.bytes(), next, 1);
  transport.wait(transport.receive(bytes_of(in), previous, 1), nullptr);
  transport.wait(sent, nullptr);
  EXPECT_EQ(in, std::vector<double>(count, previous));
  transport.wait(transport.all_reduce(transport.group(everyone(transport)), sum.data(), 100, Element::float64),
                 nullptr);
  EXPECT_EQ(sum.values()[99], 3.0);
}

// Room for the start might be none in the middle of a run.
TEST(NodeTransport, UnderALimitOfFileSizesItGoesByMpi) {
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit narrow = before;
  narrow.rlim_cur = rlim_t{1} << 30;
  setrlimit(RLIMIT_FSIZE, &narrow);
  NodeTransport transport(MPI_COMM_WORLD);
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(transport.ranks_of_node(), 1);
  expect_exchange(transport, 300000);
}

TEST(NodeTransport, WhatHasNoRoomIsInMemoryOfItsOwn) {
  NodeTransport transport(MPI_COMM_WORLD, {.mpi = {}, .room = 1 << 20});
  EXPECT_EQ(transport.ranks_of_node(), 3);
  expect_exchange(transport, 300000);  // 2.4 MB
}

TEST(NodeTransport, WaitsAreTold) {
  struct Observer final : WaitObserver {
    void waiting() override { ++begun; }
    void finished() override { ++ended; }
    int begun = 0, ended = 0;
  };
  NodeTransport transport(MPI_COMM_WORLD);
  Observer observer;
  double value = 1;
  if (transport.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(30));
  if (transport.rank() == 1) transport.wait(transport.send(std::as_bytes(std::span(&value, 1)), 0, 1), nullptr);
  if (transport.rank() != 0) return;
  transport.wait(transport.receive(std::as_writable_bytes(std::span(&value, 1)), 1, 1), &observer);
  EXPECT_GE(observer.begun, 1);
  EXPECT_GE(observer.ended, observer.begun);
}

}  // namespace
}  // namespace millrace::comm
