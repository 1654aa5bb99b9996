// Links and sums of two ranks are measured on both.
#include "probe/link_speed.h"

#include <gtest/gtest.h>

#include "comm/mpi/mpi_transport.h"

namespace millrace::probe {
namespace {

TEST(LinkSpeed, IsPositive) {
  comm::MpiTransport transport(MPI_COMM_WORLD);
  const cluster::Link link = measure_link(transport, 0, 1);
  EXPECT_GT(link.bandwidth, BytesPerSecond(0));
  EXPECT_GT(link.latency, 0_s);
  const std::vector<Bytes> sizes{Bytes(4096), Bytes(1 << 20)};
  const std::vector<Seconds> times = measure_all_reduce(transport, sizes);
  ASSERT_EQ(times.size(), 2U);
  for (const Seconds time : times) EXPECT_GT(time, 0_s);
}

}  // namespace
}  // namespace millrace::probe
