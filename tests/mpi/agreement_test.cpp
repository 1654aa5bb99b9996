// Work that takes long on one rank: the others know that it goes on, and their
// wait is a new one with each step.
#include "runtime/agreement.h"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "base/errors.h"
#include "comm/mpi/mpi_transport.h"
#include "comm/shared_error.h"
#include "tests/mpi/on_ranks.h"

namespace millrace::testing {
namespace {

constexpr int kSteps = 5;
constexpr int kWorker = 1;

/// Stands for the watchdog of rank 0: tells the worker of every wait that
/// begins.
class Waits : public comm::WaitObserver {
public:
  Waits(MPI_Comm communicator, bool tells)
      : communicator_(communicator), tells_(tells) {}
  void waiting() override {
    if (tells_ && world_rank() == 0 && begun_ < kSteps)
      MPI_Send(nullptr, 0, MPI_BYTE, kWorker, 0, communicator_);
    ++begun_;
  }
  void finished() override {}
  int begun() const { return begun_; }

private:
  MPI_Comm communicator_;
  bool tells_;
  int begun_ = 0;
};

// False where none comes for so long that there is none.
bool wait_began(MPI_Comm communicator) {
  const auto patience =
      std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (std::chrono::steady_clock::now() < patience) {
    int there = 0;
    MPI_Iprobe(0, 0, communicator, &there, MPI_STATUS_IGNORE);
    if (there != 0) {
      MPI_Recv(nullptr, 0, MPI_BYTE, 0, 0, communicator, MPI_STATUS_IGNORE);
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// The worker goes on only when rank 0 has begun to wait anew, so no step passes
// unnoticed.
TEST(Agreement, AWaitForARankThatGoesOnBeginsAnewWithEachStep) {
  MPI_Comm apart = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &apart);
  comm::MpiTransport transport(MPI_COMM_WORLD);
  runtime::Agreement agreement(transport);
  Waits waits(apart, true);
  bool told = true;
  const std::vector<double> numbers = agreement.after(
      1,
      [&](const std::function<void()> &step) {
        for (int k = 0; k < kSteps && told && world_rank() == kWorker; ++k) {
          told = wait_began(apart);
          step();
        }
        return std::vector<double>{10.0 + world_rank()};
      },
      waits);
  EXPECT_TRUE(told);
  if (world_rank() == 0) {
    EXPECT_GE(waits.begun(), kSteps);
  }
  ASSERT_EQ(numbers.size(), static_cast<std::size_t>(transport.size()));
  for (int rank = 0; rank < transport.size(); ++rank) {
    EXPECT_EQ(numbers[static_cast<std::size_t>(rank)], 10.0 + rank);
  }
  MPI_Comm_free(&apart);
}

TEST(Agreement, AllFailAsTheLowestRankThatFails) {
  comm::MpiTransport transport(MPI_COMM_WORLD);
  runtime::Agreement agreement(transport);
  Waits waits(MPI_COMM_NULL, false);
  try {
    agreement.after(
        0,
        [](const std::function<void()> &) -> std::vector<double> {
          if (world_rank() >= 2)
            throw InvalidInput("broken");
          return {};
        },
        waits);
    FAIL();
  } catch (const comm::SharedError &error) {
    EXPECT_STREQ(error.what(), "rank 2: broken");
    EXPECT_EQ(error.code(), ExitCode::usage);
  }
}

} // namespace
} // namespace millrace::testing
