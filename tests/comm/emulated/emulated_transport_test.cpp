// Model time of messages and sums between real processes: links, channels, order, and data that does not exist.
#include "comm/emulated/emulated_transport.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/errors.h"
#include "comm/mpi/mpi_transport.h"

namespace millrace::comm {
namespace {

constexpr std::size_t kMiB = 1 << 20;

// 1 ms and 1 ms a MiB for messages, 2 ms a MiB for sums.
LinkModel links() {
  const auto mib = [](Bytes bytes) { return static_cast<double>(bytes.value()) / static_cast<double>(kMiB); };
  LinkModel links;
  links.message = [mib](Bytes bytes, int, int) { return Seconds(1e-3 + 1e-3 * mib(bytes)); };
  links.all_reduce = [mib](Bytes bytes, std::span<const int>) { return Seconds(2e-3 * mib(bytes)); };
  return links;
}

struct Rank {
  explicit Rank(LinkModel model = links()) : network(inner, clock, std::move(model)) { clock.start(); }
  Ticket send(std::size_t mib, int peer, int tag = 1) {
    return network.send({static_cast<const std::byte*>(nullptr), mib * kMiB}, peer, tag);
  }
  Ticket receive(std::size_t mib, int peer, int tag = 1) {
    return network.receive({static_cast<std::byte*>(nullptr), mib * kMiB}, peer, tag);
  }
  double now() const { return clock.now().value(); }

  MpiTransport inner{MPI_COMM_WORLD};
  VirtualClock clock{1.0};
  EmulatedTransport network;
};

TEST(EmulatedTransport, AMessageTakesItsLatencyAndItsBytes) {
  Rank rank;
  if (rank.network.rank() == 0) {
    rank.clock.spend(3_ms);
    rank.network.wait(rank.send(10, 1), nullptr);
    EXPECT_DOUBLE_EQ(rank.now(), 0.003) << "who sends does not wait";
    EXPECT_EQ(rank.network.bytes_sent(), 10 * std::int64_t{kMiB});
    EXPECT_LE(rank.inner.bytes_sent(), EmulatedTransport::kPayload + 64) << "most of it does not exist";
  } else if (rank.network.rank() == 1) {
    rank.network.wait(rank.receive(10, 0), nullptr);
    EXPECT_DOUBLE_EQ(rank.now(), 0.003 + 0.011);
  }
}

TEST(EmulatedTransport, AMessageStartsWhenItsReceiveIsPosted) {
  Rank rank;
  if (rank.network.rank() == 0) {
    rank.network.wait(rank.send(10, 1), nullptr);
  } else if (rank.network.rank() == 1) {
    rank.clock.spend(20_ms);
    rank.network.wait(rank.receive(10, 0), nullptr);
    EXPECT_DOUBLE_EQ(rank.now(), 0.020 + 0.011);
  }
}

TEST(EmulatedTransport, ARankReceivesOneMessageAtATime) {
  Rank rank;
  const int self = rank.network.rank();
  if (self != 2) {
    if (self == 1) rank.clock.spend(5_ms);
    rank.network.wait(rank.send(10, 2), nullptr);
    return;
  }
  const Ticket later = rank.receive(10, 1), first = rank.receive(10, 0);
  rank.clock.spend(8_ms);  // both have come before they are waited for
  rank.network.wait(first, nullptr);
  EXPECT_DOUBLE_EQ(rank.now(), 0.011);
  rank.network.wait(later, nullptr);
  EXPECT_DOUBLE_EQ(rank.now(), 0.010 + 0.011) << "the channel was taken until 10 ms; the latency takes none";
}

TEST(EmulatedTransport, ARankSendsOneMessageAtATime) {
  for (const bool half_duplex : {false, true}) {
    LinkModel model = links();
    model.half_duplex = half_duplex;
    Rank rank(model);
    if (rank.network.rank() == 0) {
      const Ticket a = rank.send(10, 1), b = rank.send(10, 2);
      rank.network.wait(a, nullptr);
      rank.network.wait(b, nullptr);
    } else {
      rank.network.wait(rank.receive(10, 0), nullptr);
      EXPECT_DOUBLE_EQ(rank.now(), rank.network.rank() == 1 ? 0.011 : 0.021);
    }
  }
}

TEST(EmulatedTransport, ASumBeginsWithItsLastMemberAndRunsBesideComputation) {
  Rank rank;
  const std::vector<int> all{0, 1, 2};
  const GroupId group = rank.network.group(all);
  rank.clock.spend(Seconds(0.004 * (rank.network.rank() + 1)));
  const Ticket first = rank.network.all_reduce(group, nullptr, kMiB, Element::float32);   // 4 MiB: 8 ms
  const Ticket second = rank.network.all_reduce(group, nullptr, kMiB, Element::float32);  // after the first
  const double joined = rank.now();
  rank.clock.spend(1_ms);
  rank.network.wait(first, nullptr);
  EXPECT_DOUBLE_EQ(rank.now(), std::max(joined + 0.001, 0.012 + 0.008));
  rank.network.wait(second, nullptr);
  EXPECT_DOUBLE_EQ(rank.now(), 0.012 + 0.016);
}

// Each half takes its own time: 1 ms a MiB here, 3 ms.
TEST(EmulatedTransport, HalvesOfASumFollowEachOther) {
  LinkModel model = links();
  const auto rate = [](double seconds) {
    return [seconds](Bytes bytes, std::span<const int>) {
      return Seconds(seconds * static_cast<double>(bytes.value()) / static_cast<double>(kMiB));
    };
  };
  model.reduce_scatter = rate(1e-3);
  model.all_gather = rate(3e-3);
  Rank rank(std::move(model));
  const std::vector<int> all{0, 1, 2};
  const GroupId group = rank.network.group(all);
  const Ticket first = rank.network.reduce_scatter(group, nullptr, kMiB, Element::float32);
  const Ticket second = rank.network.all_gather(group, nullptr, kMiB, Element::float32);
  rank.network.wait(first, nullptr);
  EXPECT_DOUBLE_EQ(rank.now(), 0.004);
  rank.network.wait(second, nullptr);
  EXPECT_DOUBLE_EQ(rank.now(), 0.016);
  // What exists arrives: 8 elements in parts of 3, 3 and 2, a zero with its sign.
  std::vector<float> data(8, static_cast<float>(rank.network.rank() + 1));
  if (rank.network.rank() == 2) data[7] = -0.0F;
  rank.network.wait(rank.network.all_gather(group, data.data(), 8, Element::float32), nullptr);
  EXPECT_EQ(data, (std::vector<float>{1, 1, 1, 2, 2, 2, 3, 0}));
  EXPECT_TRUE(std::signbit(data[7]));
}

// Rank 1 takes part in both groups: the second sum waits for the first on its channel, for rank 2 too.
TEST(EmulatedTransport, SumsOfDifferentGroupsFollowEachOther) {
  Rank rank;
  const int self = rank.network.rank();
  const std::vector<int> low{0, 1}, high{1, 2};
  const GroupId first = self < 2 ? rank.network.group(low) : -1;
  const GroupId second = self > 0 ? rank.network.group(high) : -1;
  std::vector<Ticket> tickets;
  if (self == 0) rank.clock.spend(30_ms);
  if (self < 2) tickets.push_back(rank.network.all_reduce(first, nullptr, kMiB, Element::float32));
  if (self > 0) tickets.push_back(rank.network.all_reduce(second, nullptr, kMiB, Element::float32));
  if (self == 1) rank.clock.spend(50_ms);  // the errand of this sleep starts the second
  for (const Ticket ticket : tickets) rank.network.wait(ticket, nullptr);
  EXPECT_DOUBLE_EQ(rank.now(), self == 0 ? 0.038 : self == 1 ? 0.050 : 0.046);
}

TEST(EmulatedTransport, DataThatExistsIsCarriedWhole) {
  Rank rank;
  const std::vector<int> all{0, 1, 2};
  std::vector<double> sum(20000, rank.network.rank() + 1);
  rank.network.wait(rank.network.all_reduce(rank.network.group(all), sum.data(), 20000, Element::float64), nullptr);
  EXPECT_EQ(sum, std::vector<double>(20000, 6.0));
  std::vector<std::byte> data(200000, std::byte{static_cast<unsigned char>(rank.network.rank() + 3)});
  if (rank.network.rank() == 0) rank.network.wait(rank.network.send(data, 1, 5), nullptr);
  if (rank.network.rank() != 1) return;
  rank.network.wait(rank.network.receive(data, 0, 5), nullptr);
  EXPECT_EQ(data, std::vector<std::byte>(200000, std::byte{3}));
}

TEST(EmulatedTransport, AMessageOfAnotherSizeIsTold) {
  Rank rank;
  if (rank.network.rank() == 0) rank.network.wait(rank.send(2, 1), nullptr);
  if (rank.network.rank() != 1) return;
  const Ticket ticket = rank.receive(3, 0);
  EXPECT_THROW(rank.network.wait(ticket, nullptr), Error);
}

TEST(EmulatedTransport, ATestIsTrueOnceTheModelTimeIsOver) {
  Rank rank;
  if (rank.network.rank() == 0) {
    rank.network.wait(rank.send(100, 1), nullptr);
  } else if (rank.network.rank() == 1) {
    const Ticket ticket = rank.receive(100, 0);
    while (!rank.network.test(ticket)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_DOUBLE_EQ(rank.now(), 0.101);
    EXPECT_GE(rank.clock.elapsed().value(), 0.101);
  }
}

// They begin when all have come, one after the other, whatever sums of gradients are in flight.
TEST(EmulatedTransport, CollectivesHaveAChannelOfTheirOwn) {
  LinkModel model = links();
  model.collective = [](Collective kind, Bytes, std::span<const int>) {
    return kind == Collective::all_gather ? 2_ms : 5_ms;
  };
  Rank rank(model);
  std::vector<int> all;
  for (int i = 0; i < rank.network.size(); ++i) all.push_back(i);
  const Ticket sum = rank.network.all_reduce(rank.network.group(all), nullptr, 25 * kMiB, Element::float32);
  rank.clock.spend(Seconds(1e-3 * rank.network.rank()));
  const Ticket first = rank.network.model_collective(Collective::all_reduce, kMiB, all);
  const Ticket second = rank.network.model_collective(Collective::all_gather, 100, all);
  rank.clock.spend(1_ms);
  rank.network.wait(first, nullptr);
  const double latest = 1e-3 * (rank.network.size() - 1);
  EXPECT_DOUBLE_EQ(rank.now(), std::max(latest + 0.005, 1e-3 * rank.network.rank() + 0.001));
  rank.network.wait(second, nullptr);
  EXPECT_DOUBLE_EQ(rank.now(), latest + 0.007);
  const Ticket third = rank.network.model_collective(Collective::reduce_scatter, 0, all);
  rank.clock.spend(20_ms);
  rank.network.wait(third, nullptr);
  EXPECT_DOUBLE_EQ(rank.now(), latest + 0.027) << "it was over before";
  rank.network.wait(sum, nullptr);
  EXPECT_DOUBLE_EQ(rank.now(), 0.2);
}

}  // namespace
}  // namespace millrace::comm
