// The global norm counts each parameter once, wherever it is owned, and no running statistic.
#include "runtime/step_sums.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/mpi/networks.h"
#include "tests/mpi/training_run.h"
#include "tests/runtime/programs.h"

namespace millrace::runtime {
namespace {

using testing::training_program;

// One rank of a job whose other ranks add nothing: what a rank puts into a sum can be looked at.
class LoneTransport final : public comm::Transport {
 public:
  LoneTransport(int rank, int size) : rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::int64_t largest_tag() const override { return 32767; }
  comm::Ticket send(std::span<const std::byte>, int, int) override { return 0; }
  comm::Ticket receive(std::span<std::byte>, int, int) override { return 0; }
  comm::GroupId group(std::span<const int>) override { return 0; }
  comm::Ticket all_reduce(comm::GroupId, void*, std::int64_t, comm::Element) override { return 0; }
  comm::Ticket reduce_scatter(comm::GroupId, void*, std::int64_t, comm::Element) override { return 0; }
  comm::Ticket all_gather(comm::GroupId, void*, std::int64_t, comm::Element) override { return 0; }
  bool test(comm::Ticket) override { return true; }
  void wait(comm::Ticket, comm::WaitObserver*) override {}
  std::int64_t bytes_sent() const override { return 0; }
  std::int64_t bytes_received() const override { return 0; }

 private:
  int rank_;
  int size_;
};

// Σ over ranks of what each gives to the square of the norm, all gradients being 1 and all statistics 1000.
double square_of_norm(const Graph& graph, const millrace::testing::Grid& grid, kernels::Precision precision) {
  const Program program = training_program(graph, millrace::testing::make_plan(graph, grid), 8);
  double squares = 0;
  for (std::int32_t s = 0; s < static_cast<std::int32_t>(program.stages.size()); ++s) {
    const int rank = program.stages[static_cast<std::size_t>(s)].ranks.front();
    LoneTransport transport(rank, grid.ranks());
    StageRunner runner(graph, program, s, precision, 1);
    kernels::StageParameters& parameters = runner.parameters();
    for (std::size_t i = 0; i < parameters.order().size(); ++i) {
      const double value = graph.tensor(parameters.order()[i]).role == Role::buffer ? 1000 : 1;
      const std::int64_t count = parameters.range_elements(i, 1);
      if (precision == kernels::Precision::fp64) {
        std::fill_n(static_cast<double*>(parameters.gradient_range(i)), count, value);
      } else {
        std::fill_n(static_cast<float*>(parameters.gradient_range(i)), count, static_cast<float>(value));
      }
    }
    const GradientReducer reducer(graph, program, {&runner}, rank, transport);
    StepSums sums(graph, program, rank, transport);
    for (std::int32_t b = 0; b < static_cast<std::int32_t>(program.buckets.size()); ++b) {
      if (reducer.place(b).runner != nullptr) sums.add_squares(b, reducer.place(b));
    }
    squares += sums.gradient_norm() * sums.gradient_norm();
  }
  return squares;
}

TEST(StepSums, TiedParameterCountsOnceOnOneRank) {
  const Graph gpt = millrace::testing::small_network("gpt");
  EXPECT_NEAR(square_of_norm(gpt, {}, kernels::Precision::fp64), static_cast<double>(gpt.parameter_count()), 1e-6);
}

TEST(StepSums, TiedParameterCountsOnceOverItsOwners) {
  const Graph gpt = millrace::testing::small_network("gpt");
  const auto count = static_cast<double>(gpt.parameter_count());
  EXPECT_NEAR(square_of_norm(gpt, {1, 3, 2, "1f1b"}, kernels::Precision::fp64), count, 1e-6);
  EXPECT_NEAR(square_of_norm(gpt, {2, 2, 2, "1f1b"}, kernels::Precision::fp32), count, 1e-6);
}

TEST(StepSums, RunningStatisticsAreNoGradient) {
  const Graph resnet = millrace::testing::small_network("resnet");
  ASSERT_FALSE(resnet.buffers().empty());
  EXPECT_NEAR(square_of_norm(resnet, {1, 2, 2, "1f1b"}, kernels::Precision::fp32),
              static_cast<double>(resnet.parameter_count()), 1e-6);
}

TEST(StepSums, LossesAddUpAndClearForgetsThem) {
  const Graph mlp = millrace::testing::small_network("mlp");
  const Program program = training_program(mlp, millrace::testing::make_plan(mlp, {}), 8);
  LoneTransport transport(0, 1);
  StepSums sums(mlp, program, 0, transport);
  sums.add_loss(0.5);
  sums.add_loss(0.25);
  sums.add_correct(1);
  EXPECT_EQ(sums.loss(), 0.75);
  EXPECT_EQ(sums.correct(), 1);
  EXPECT_EQ(sums.gradient_norm(), 0);
  sums.clear();
  EXPECT_EQ(sums.loss(), 0);
  EXPECT_EQ(sums.correct(), 0);
}

}  // namespace
}  // namespace millrace::runtime
