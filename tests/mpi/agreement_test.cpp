// Work that takes long on one rank: the others know that it goes on, and their
// wait is a new one with each step.
#include "runtime/agreement.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "base/errors.h"
#include "comm/mpi/mpi_transport.h"
#include "comm/shared_error.h"
#include "tests/mpi/on_ranks.h"
#include "tests/mpi/shared_folder.h"

namespace millrace::testing {
namespace {

constexpr int kSteps = 5;
constexpr int kWorker = 1;

/// Stands for the watchdog of rank 0: notes every wait that begins where the worker sees it, without MPI, which one
/// thread at a time uses.
class Waits : public comm::WaitObserver {
 public:
  explicit Waits(std::filesystem::path notes) : notes_(std::move(notes)) {}
  void waiting() override {
    ++begun_;
    if (world_rank() == 0) std::ofstream(notes_, std::ios::app) << '.';
  }
  void finished() override {}
  int begun() const { return begun_; }

 private:
  std::filesystem::path notes_;
  int begun_ = 0;
};

// False where there are fewer for so long that no more come.
bool are_noted(const std::filesystem::path& notes, std::uintmax_t waits) {
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (std::chrono::steady_clock::now() < patience) {
    std::error_code none;
    if (const auto size = std::filesystem::file_size(notes, none); !none && size >= waits) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// The worker goes on only when rank 0 has begun to wait anew, so no step passes
// unnoticed.
TEST(Agreement, AWaitForARankThatGoesOnBeginsAnewWithEachStep) {
  const SharedFolder folder;
  const std::filesystem::path notes = folder.path() / "waits";
  comm::MpiTransport transport(MPI_COMM_WORLD);
  runtime::Agreement agreement(transport);
  Waits waits(notes);
  bool told = true;
  const std::vector<double> numbers = agreement.after(
      1,
      [&](const std::function<void()>& step) {
        for (int k = 0; k < kSteps && told && world_rank() == kWorker; ++k) {
          told = are_noted(notes, static_cast<std::uintmax_t>(k) + 1);
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
}

TEST(Agreement, AllFailAsTheLowestRankThatFails) {
  comm::MpiTransport transport(MPI_COMM_WORLD);
  runtime::Agreement agreement(transport);
  const SharedFolder folder;
  Waits waits(folder.path() / "waits");
  try {
    agreement.after(
        0,
        [](const std::function<void()>&) -> std::vector<double> {
          if (world_rank() >= 2) throw InvalidInput("broken");
          return {};
        },
        waits);
    FAIL();
  } catch (const comm::SharedError& error) {
    EXPECT_STREQ(error.what(), "rank 2: broken");
    EXPECT_EQ(error.code(), ExitCode::usage);
  }
}

}  // namespace
}  // namespace millrace::testing
