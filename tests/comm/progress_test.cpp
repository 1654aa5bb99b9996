// Operations move while the caller computes, whatever else has been started and never waited for.
#include "comm/mpi/mpi_transport.h"

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>

namespace {

std::atomic<MPI_Request> g_sum{MPI_REQUEST_NULL};  // the sum started last
std::atomic<bool> g_sum_is_done{false};

}  // namespace

// MPI's profiling interface: the program's own definitions see each call. A request becomes null when it is done.
extern "C" int MPI_Iallreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                              MPI_Request* request) {
  const int code = PMPI_Iallreduce(from, to, count, type, op, comm, request);
  g_sum_is_done = false;
  g_sum = *request;
  return code;
}

extern "C" int MPI_Testall(int count, MPI_Request requests[], int* done, MPI_Status statuses[]) {
  const bool of_sum = count > 0 && requests[0] != MPI_REQUEST_NULL && requests[0] == g_sum.load();
  const int code = PMPI_Testall(count, requests, done, statuses);
  if (of_sum && *done != 0) g_sum_is_done = true;
  return code;
}

namespace millrace::comm {
namespace {

// Longer than any machine needs: only a sum that does not move at all fails.
bool done_without_the_caller() {
  for (int naps = 0; naps < 3000 && !g_sum_is_done; ++naps) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return g_sum_is_done;
}

TEST(MpiTransport, FinishedSendThatNobodyWaitsForDoesNotHoldUpASum) {
  MpiTransport transport(MPI_COMM_WORLD);
  const int next = (transport.rank() + 1) % transport.size();
  const int previous = (transport.rank() + transport.size() - 1) % transport.size();
  std::vector<int> all(static_cast<std::size_t>(transport.size()));
  std::iota(all.begin(), all.end(), 0);
  const GroupId group = transport.group(all);

  const double out = transport.rank();
  double in = -1;
  const Ticket sent = transport.send(std::as_bytes(std::span(&out, 1)), next, 1);
  transport.wait(transport.receive(std::as_writable_bytes(std::span(&in, 1)), previous, 1), nullptr);
  EXPECT_EQ(in, previous);

  std::vector<double> values(1 << 19, 1.0);  // 4 MiB: many steps of the progress engine
  const Ticket sum =
      transport.all_reduce(group, values.data(), static_cast<std::int64_t>(values.size()), Element::float64);
  EXPECT_TRUE(done_without_the_caller());
  transport.wait(sum, nullptr);
  EXPECT_EQ(values, std::vector<double>(values.size(), transport.size()));
  transport.wait(sent, nullptr);
}

}  // namespace
}  // namespace millrace::comm
