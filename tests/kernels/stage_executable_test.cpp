// The executor on a network with skips and tied weights: gradients, cuts, slots, split backward, memory.
#include "kernels/stage_executable.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include <gmock/gmock.h>

#include "graph/graph_builder.h"
#include "kernels/arena.h"
#include "kernels/reference/reference_device.h"
#include "tests/kernels/counting_allocator.h"
#include "tests/kernels/small_networks.h"
#include "tests/kernels/typed_memory.h"

namespace millrace::kernels::testing {
namespace {

constexpr std::int64_t kRows = 4;

/// The whole skip network as one stage, with two slots.
struct WholeNetwork {
  explicit WholeNetwork(bool split, bool training = true) {
    parameters.initialize(3);
    CompileOptions options;
    options.rows = kRows;
    options.slots = 2;
    options.split_backward = split;
    options.training = training;
    const std::int64_t before = allocations().aligned_bytes;
    executable = make_reference_device()->compile(stage, parameters, options);
    allocated = allocations().aligned_bytes - before;
  }

  /// Micro-batch `id` goes forward through `slot`, and its row weights are set.
  void forward(int slot, int id) {
    std::vector<double> x;
    std::vector<double> labels;
    for (int i = 0; i < 6 * kRows; ++i) x.push_back(static_cast<float>(0.1 * ((i * 7 + id * 5) % 23) - 1));
    for (int i = 0; i < kRows; ++i) labels.push_back((i + id) % 6);
    write(executable->input(slot, graph.inputs()[0]), x, Precision::fp32);
    write_indices(executable->input(slot, graph.labels()[0]), labels);
    const std::vector<std::int64_t> samples{id * kRows, id * kRows + 1, id * kRows + 2, id * kRows + 3};
    executable->forward(slot, BatchContext{0, samples, kRows, 0.125});
    if (training()) write(executable->output_gradient(slot, loss), {0.125, 0.125, 0.125, 0.125}, Precision::fp32);
  }

  std::vector<double> gradients() {
    parameters.combine_uses();
    const std::int64_t count = parameters.range_elements(0, parameters.order().size());
    return read(parameters.gradient_range(0), count, Precision::fp32);
  }
  bool training() const { return executable->bytes().per_slot > 0 && trains; }

  Graph graph = skip_network(true);
  StageGraph stage = make_stage_graph(graph, all_ops(graph));
  StageParameters parameters{stage, stage.parameters, Precision::fp32};
  TensorId loss = graph.op(graph.loss()).outputs[0];
  bool trains = true;
  std::unique_ptr<Executable> executable;
  std::int64_t allocated = 0;

  static std::vector<OpId> all_ops(const Graph& graph) {
    std::vector<OpId> ops(static_cast<std::size_t>(graph.size()));
    std::iota(ops.begin(), ops.end(), 0);
    return ops;
  }
};

TEST(StageExecutable, GradientsOfANetworkAreFiniteDifferences) {
  const Graph graph = skip_network(true);
  const auto device = make_reference_device();
  const auto loss = [&](const std::string& name, std::size_t element, double shift) {
    const PipelineRun run = run_pipeline(graph, {}, *device, Precision::fp64, kRows, shift, name, element);
    return std::accumulate(run.loss.begin(), run.loss.end(), 0.0) / kRows;
  };
  const PipelineRun run = run_pipeline(graph, {}, *device, Precision::fp64, kRows);
  EXPECT_EQ(run.gradients.size(), 7u);  // a: 2, c: 2, f: 2, h: its bias
  for (const auto& [name, gradient] : run.gradients) {
    for (std::size_t i = 0; i < gradient.size(); i += 5) {
      EXPECT_NEAR(gradient[i], (loss(name, i, 1e-5) - loss(name, i, -1e-5)) / 2e-5, 1e-6) << name << " " << i;
    }
  }
}

TEST(StageExecutable, ACutAnywhereGivesTheSameBits) {
  const Graph graph = skip_network(true);
  const auto device = make_reference_device();
  const PipelineRun whole = run_pipeline(graph, {}, *device, Precision::fp32, kRows);
  for (OpId cut = 1; cut < graph.size(); ++cut) {
    const PipelineRun parts = run_pipeline(graph, {cut}, *device, Precision::fp32, kRows);
    EXPECT_EQ(whole.loss, parts.loss) << "cut before operator " << cut;
    EXPECT_EQ(whole.gradients, parts.gradients) << "cut before operator " << cut;
  }
}

TEST(StageExecutable, TwoCutsAnywhereGiveTheSameBits) {
  const Graph graph = skip_network(false);
  const auto device = make_reference_device();
  const PipelineRun whole = run_pipeline(graph, {}, *device, Precision::fp32, kRows);
  for (OpId first = 1; first < graph.size(); ++first) {
    for (OpId second = first + 1; second < graph.size(); ++second) {
      const PipelineRun parts = run_pipeline(graph, {first, second}, *device, Precision::fp32, kRows);
      EXPECT_EQ(whole.gradients, parts.gradients) << first << ", " << second;
    }
  }
}

TEST(StageExecutable, SlotsKeepTheirMicroBatchesApart) {
  WholeNetwork one_by_one(false);
  one_by_one.forward(0, 0);
  one_by_one.executable->backward(0);
  one_by_one.forward(0, 1);
  one_by_one.executable->backward(0);

  WholeNetwork together(false);
  together.forward(0, 0);
  together.forward(1, 1);
  together.executable->backward(0);
  together.executable->backward(1);
  EXPECT_EQ(one_by_one.gradients(), together.gradients());
}

TEST(StageExecutable, SplitBackwardOfInterleavedSlotsGivesTheSameBits) {
  WholeNetwork whole(false);
  whole.forward(0, 0);
  whole.forward(1, 1);
  whole.executable->backward(0);
  whole.executable->backward(1);

  WholeNetwork split(true);
  split.forward(0, 0);
  split.forward(1, 1);
  split.executable->backward_input(0);
  split.executable->backward_input(1);
  split.executable->backward_weight(0);
  split.executable->backward_weight(1);
  EXPECT_EQ(whole.gradients(), split.gradients());
  EXPECT_GT(split.executable->bytes().per_slot, whole.executable->bytes().per_slot);
}

TEST(StageExecutable, WeightGradientsPartByPartGiveTheSameBits) {
  WholeNetwork whole(true);
  WholeNetwork parts(true);
  for (WholeNetwork* network : {&whole, &parts}) {
    for (const int slot : {0, 1}) network->forward(slot, slot);
    for (const int slot : {0, 1}) network->executable->backward_input(slot);
  }
  for (const int slot : {0, 1}) whole.executable->backward_weight(slot);
  std::vector<OpId> ops(static_cast<std::size_t>(parts.graph.size()));
  std::iota(ops.begin(), ops.end(), 0);
  const std::size_t cut = ops.size() / 2;
  for (const auto& part : {std::span(ops).subspan(cut), std::span(ops).first(cut)}) {
    for (const int slot : {0, 1}) parts.executable->backward_weight_of(slot, part);
  }
  EXPECT_EQ(whole.gradients(), parts.gradients());
}

TEST(StageExecutable, TheFirstContributionOfAStepOverwritesWhatLiesThere) {
  for (const int micro_batches : {0, 1, 2}) {
    WholeNetwork zeroed(false), emptied(false);
    for (WholeNetwork* network : {&zeroed, &emptied}) {
      StageParameters& parameters = network->parameters;
      const auto elements = parameters.gradient_bytes() / static_cast<std::int64_t>(sizeof(float));
      std::fill_n(static_cast<float*>(parameters.gradient_range(0)), elements, NAN);
      if (network == &zeroed) {
        parameters.zero_gradients();
      } else {
        parameters.discard_gradients();
      }
      for (int id = 0; id < micro_batches; ++id) {
        network->forward(0, id);
        network->executable->backward(0);
      }
    }
    EXPECT_EQ(zeroed.gradients(), emptied.gradients()) << micro_batches;
  }
}

TEST(StageExecutable, CallsAllocateNothing) {
  for (const bool split : {false, true}) {
    WholeNetwork network(split);
    network.forward(0, 0);
    const std::vector<std::int64_t> samples{1, 2, 3, 4};
    const std::int64_t before = allocations().count;
    network.executable->forward(1, BatchContext{0, samples, kRows, 0.125});
    if (split) {
      network.executable->backward_input(0);
      network.executable->backward_weight(0);
    } else {
      network.executable->backward(0);
    }
    network.parameters.combine_uses();
    network.parameters.discard_gradients();
    EXPECT_EQ(allocations().count, before);
  }
}

TEST(StageExecutable, BytesAreWhatIsAllocated) {
  const WholeNetwork network(false);
  const ExecutableBytes bytes = network.executable->bytes();
  EXPECT_EQ(bytes.slots, 2);
  EXPECT_GT(network.allocated, 0);
  EXPECT_EQ(bytes.per_slot * bytes.slots + bytes.workspace, network.allocated);
}

TEST(StageExecutable, EvaluationKeepsNothingForBackward) {
  WholeNetwork training(false);
  WholeNetwork evaluation(false, false);
  evaluation.trains = false;
  EXPECT_LT(evaluation.executable->bytes().per_slot, training.executable->bytes().per_slot);
  EXPECT_THROW(evaluation.executable->output_gradient(0, evaluation.loss), std::logic_error);
  evaluation.forward(1, 0);  // dropout passes through: the loss differs from the training one
  training.forward(1, 0);
  EXPECT_NE(read(evaluation.executable->output(1, evaluation.loss), kRows, Precision::fp32),
            read(training.executable->output(1, training.loss), kRows, Precision::fp32));
}

TEST(StageExecutable, RefusesTensorsThatAreNotAtTheBorder) {
  const WholeNetwork network(false);
  EXPECT_THROW(network.executable->input(0, network.graph.op(0).outputs[0]), std::logic_error);
  EXPECT_THROW(network.executable->output(2, network.loss), std::logic_error);
  EXPECT_THROW(network.executable->input_gradient(0, network.graph.inputs()[0]), std::logic_error);
}

/// A linear, then `length` transposes, which keep nothing for backward, then an operator outside.
ExecutableBytes bytes_of_chain(int length) {
  GraphBuilder builder("chain");
  TensorId x = builder.input("x", {{8, 8}, ElementType::real, true});
  x = builder.add(
      {.name = "first", .kind = "linear", .inputs = {x}, .attributes = {{"out_features", std::int64_t{8}}}});
  for (int i = 0; i < length; ++i) {
    x = builder.add({.name = "t" + std::to_string(i),
                     .kind = "transpose",
                     .inputs = {x},
                     .attributes = {{"permutation", std::vector<std::int64_t>{1, 0}}}});
  }
  builder.add({.name = "outside", .kind = "relu", .inputs = {x}});
  const Graph graph = builder.build();
  std::vector<OpId> ops = WholeNetwork::all_ops(graph);
  ops.pop_back();
  const StageGraph stage = make_stage_graph(graph, ops);
  StageParameters parameters(stage, stage.parameters, Precision::fp32);
  CompileOptions options;
  options.rows = 2;
  return make_reference_device()->compile(stage, parameters, options)->bytes();
}

TEST(StageExecutable, TransientTensorsShareMemory) {
  const std::int64_t tensor = 2 * 64 * 4;
  const ExecutableBytes bytes = bytes_of_chain(20);
  EXPECT_EQ(bytes.workspace, 2 * tensor);              // the one read and the one written
  EXPECT_EQ(bytes.per_slot, 3 * tensor + kAlignment);  // x, the output, its gradient; and the sample ids
  EXPECT_EQ(bytes_of_chain(40).workspace, bytes.workspace);
}

}  // namespace
}  // namespace millrace::kernels::testing
