// Tests that fail on one rank only, each in its own way: tests/support/CMakeLists.txt holds mpi_main to its promises.
#include <stdexcept>

#include <gtest/gtest.h>
#include <mpi.h>

namespace {

int rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

TEST(Probe, Passes) { EXPECT_GE(rank(), 0); }

TEST(Probe, FailsOnRank2) { EXPECT_NE(rank(), 2) << "seen by rank 2 alone"; }

TEST(Probe, ThrowsOnRank1) {
  if (rank() == 1) throw std::runtime_error("thrown by rank 1 alone");
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(Probe, LeavesRank0Waiting) {
  ASSERT_NE(rank(), 1) << "rank 1 leaves early";
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace
