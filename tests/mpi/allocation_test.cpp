// After the first iteration the kernels and updates of every rank allocate nothing.
#include <map>
#include <memory>

#include <gtest/gtest.h>

#include "comm/node/node_transport.h"
#include "program/lowering.h"
#include "program/stage_dag.h"
#include "runtime/program_runner.h"
#include "schedules/registry.h"
#include "tests/mpi/networks.h"
#include "tests/mpi/on_ranks.h"
#include "tests/mpi/thread_allocations.h"

namespace millrace::testing {
namespace {

// Calls so far and what they allocated.
struct Tally {
  std::int64_t calls = 0;
  std::int64_t allocations = 0;
};

// Another executable, with the allocations of its calls counted.
class CountedExecutable final : public kernels::Executable {
 public:
  CountedExecutable(std::unique_ptr<Executable> inner, Tally& tally) : inner_(std::move(inner)), tally_(tally) {}

  std::int64_t rows() const override { return inner_->rows(); }
  kernels::ExecutableBytes bytes() const override { return inner_->bytes(); }
  void* input(int slot, TensorId tensor) override { return inner_->input(slot, tensor); }
  const void* output(int slot, TensorId tensor) override { return inner_->output(slot, tensor); }
  void* output_gradient(int slot, TensorId tensor) override { return inner_->output_gradient(slot, tensor); }
  const void* input_gradient(int slot, TensorId tensor) override { return inner_->input_gradient(slot, tensor); }
  void forward(int slot, const kernels::BatchContext& context) override {
    counted([&] { inner_->forward(slot, context); });
  }
  void backward(int slot) override {
    counted([&] { inner_->backward(slot); });
  }
  void backward_input(int slot) override {
    counted([&] { inner_->backward_input(slot); });
  }
  void backward_weight(int slot) override {
    counted([&] { inner_->backward_weight(slot); });
  }
  void backward_weight_of(int slot, std::span<const OpId> ops) override {
    counted([&] { inner_->backward_weight_of(slot, ops); });
  }
  void recompute(int slot) override {
    counted([&] { inner_->recompute(slot); });
  }
  void observe(kernels::BackwardObserver* observer) override { inner_->observe(observer); }

 private:
  template <class Call>
  void counted(Call call) {
    const std::int64_t before = allocations_of_this_thread();
    call();
    tally_.allocations += allocations_of_this_thread() - before;
    ++tally_.calls;
  }

  std::unique_ptr<Executable> inner_;
  Tally& tally_;
};

class CountedDevice final : public kernels::Device {
 public:
  explicit CountedDevice(Tally& tally)
      : inner_(kernels::make_device("auto", kernels::Precision::fp32)), tally_(tally) {}
  std::string_view name() const override { return inner_->name(); }
  std::unique_ptr<kernels::Executable> compile(const StageGraph& stage, kernels::StageParameters& parameters,
                                               const kernels::CompileOptions& options) override {
    return std::make_unique<CountedExecutable>(inner_->compile(stage, parameters, options), tally_);
  }

 private:
  std::unique_ptr<kernels::Device> inner_;
  Tally& tally_;
};

// Trains this rank's stages as the trainer does: two batch sizes in turn, so that no slot or layout is met only once.
// A rank of its own, which sends nothing, allocates nothing at all.
void expect_no_allocation(const Graph& graph, const Grid& grid) {
  constexpr std::int64_t kBatch = 22, kSamples = 50, kSteps = 9;  // batches of 22, 22 and 6
  const Plan plan = make_plan(graph, grid);
  const StageDag dag = make_stage_dag(graph, plan);
  std::vector<Program> programs;
  for (const std::int64_t batch : {kBatch, kSamples % kBatch}) {
    programs.push_back(lower(graph, plan, schedules::compute_order(plan, dag), batch));
  }
  const bool alone = grid.ranks() == 1;
  comm::NodeTransport transport(alone ? MPI_COMM_SELF : MPI_COMM_WORLD);
  const int rank = transport.rank();

  Tally tally;
  CountedDevice device(tally);
  std::vector<std::unique_ptr<runtime::StageRunner>> runners_of_stages;
  std::vector<std::unique_ptr<runtime::Optimizer>> optimizers;
  std::vector<runtime::LocalStage> stages(programs[0].stages.size());
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (programs[0].stages[s].ranks.front() != rank) continue;
    auto& stage = *runners_of_stages.emplace_back(std::make_unique<runtime::StageRunner>(
        graph, programs[0], static_cast<std::int32_t>(s), kernels::Precision::fp32, 1));
    for (const Program& program : programs) stage.require(program, rank);
    stage.compile(device);
    optimizers.push_back(std::make_unique<runtime::Optimizer>(
        graph, stage.parameters(), runtime::OptimizerOptions{.kind = runtime::OptimizerKind::adamw}));
    stages[s] = {&stage, optimizers.back().get()};
  }
  runtime::Watchdog watchdog(120_s, [](std::int64_t, Seconds) { MPI_Abort(MPI_COMM_WORLD, 4); });
  std::vector<std::unique_ptr<runtime::ProgramRunner>> runners;
  for (const Program& program : programs) {
    runners.push_back(std::make_unique<runtime::ProgramRunner>(graph, program, rank, stages, transport, watchdog,
                                                               static_cast<int>(runners.size())));
  }
  const SmallSource source(graph, kSamples, 1);
  const dataset::SampleOrder order(1, kSamples, kBatch, dataset::Tail::uneven);
  runtime::Feed feed(graph, {&programs[0], &programs[1]}, rank, source, dataset::Split::train, order);

  feed.start(0, kSteps);
  std::int64_t updates = 0;
  std::map<std::size_t, int> seen;  // iterations by batch size
  runtime::ProgramRunner* last = nullptr;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    const dataset::Batch& batch = feed.next();
    const Tally before = tally;
    runtime::ProgramRunner& runner = *runners[batch.ids.size() == kBatch ? 0 : 1];
    const std::int64_t on_this_thread = allocations_of_this_thread();
    if (last != nullptr && last != &runner) last->finish();
    last = &runner;
    runner.train(feed, batch, {.step = step, .learning_rate = 1e-3}, updates);
    runtime::StepResult result;
    while (runner.take(result)) EXPECT_GT(result.loss, 0);
    const std::int64_t allocated = allocations_of_this_thread() - on_this_thread;
    EXPECT_GT(tally.calls, before.calls);
    if (++seen[batch.ids.size()] <= 2) continue;  // the first iterations of each size may
    EXPECT_EQ(tally.allocations, before.allocations) << "rank " << rank << " step " << step;
    if (alone) {
      EXPECT_EQ(allocated, 0) << "rank " << rank << " step " << step;
    }
  }
  EXPECT_GE(updates, kSteps);
  last->finish();
  for (auto& runner : runners) runner->drain();

  const std::int64_t before = allocations_of_this_thread();
  for (const runtime::LocalStage& stage : stages) {
    if (stage.runner == nullptr) continue;
    stage.optimizer->update(0, stage.runner->parameters().order().size(), {.learning_rate = 1e-3, .step = kSteps});
    stage.runner->parameters().zero_gradients();
    stage.runner->parameters().combine_uses();
  }
  EXPECT_EQ(allocations_of_this_thread(), before);
}

TEST(Allocation, CounterSeesThisThreadsAllocations) {
  const std::int64_t before = allocations_of_this_thread();
  auto words = std::make_unique<std::vector<int>>(100);
  EXPECT_GE(allocations_of_this_thread() - before, 2);
  EXPECT_EQ((*words)[0], 0);
}

TEST(Allocation, TrainingKernelsAllocateNothing) {
  for (const std::string& network : small_networks()) {
    SCOPED_TRACE(network);
    const Graph graph = small_network(network);
    expect_no_allocation(graph, {2, 2, 3, "1f1b"});
    expect_no_allocation(graph, {1, 4, 3, "gpipe"});
    expect_no_allocation(graph, {2, 2, 2, "interleaved", Recompute::all});
  }
  expect_no_allocation(small_network("mlp"), {1, 4, 3, "pipedream"});
}

// Local edges, split backwards, copies, stashes and recomputation on one rank: with the runtime around the kernels.
TEST(Allocation, TheRuntimeAllocatesNothing) {
  const Graph graph = small_network("mlp");
  for (const Grid& grid : {Grid{1, 1, 3, "interleaved"}, Grid{1, 1, 4, "zb-v", Recompute::all}, Grid{1, 1, 4, "1f1b"},
                           Grid{1, 1, 3, "pipedream"}, Grid{1, 1, 3, "pipedream-2bw", Recompute::chosen}}) {
    SCOPED_TRACE(grid.schedule);
    expect_no_allocation(graph, grid);
  }
}

}  // namespace
}  // namespace millrace::testing
