// Links and sums of two ranks are measured on both.
#include "probe/link_speed.h"

#include <gtest/gtest.h>

#include "comm/node/node_transport.h"

namespace millrace::probe {
namespace {

class LinkSpeed : public ::testing::TestWithParam<bool> {};

TEST_P(LinkSpeed, IsPositive) {
  comm::NodeTransport transport(MPI_COMM_WORLD, {.shares_memory = GetParam()});
  const cluster::Link link = measure_link(transport, 0, 1);
  EXPECT_GT(link.bandwidth, BytesPerSecond(0));
  EXPECT_GT(link.latency, 0_s);
  const std::vector<Bytes> sizes{Bytes(4096), Bytes(1 << 20)};
  const std::vector<Seconds> times = measure_all_reduce(transport, sizes);
  ASSERT_EQ(times.size(), 2U);
  for (const Seconds time : times) EXPECT_GT(time, 0_s);
}

// As training sends: each message is one send and one receive, whichever way it goes.
TEST_P(LinkSpeed, CountsItsMessages) {
  comm::NodeTransport transport(MPI_COMM_WORLD, {.shares_memory = GetParam()});
  measure_message(transport, 0, 1, 4_KiB);
  EXPECT_EQ(transport.bytes_sent(), transport.bytes_received());
  EXPECT_EQ(transport.bytes_sent() % 4096, 0);
  EXPECT_GT(transport.bytes_sent(), 0);
}

INSTANTIATE_TEST_SUITE_P(By, LinkSpeed, ::testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "memory" : "mpi"); });

}  // namespace
}  // namespace millrace::probe
