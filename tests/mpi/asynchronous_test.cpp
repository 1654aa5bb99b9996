// Schedules that never flush equal a serial emulation with their exact delays of the weights (METHODS 2).
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include <gtest/gtest.h>

#include "base/errors.h"
#include "kernels/device.h"
#include "runtime/exact_sum.h"
#include "runtime/optimizer.h"
#include "tests/mpi/networks.h"
#include "tests/mpi/on_ranks.h"

namespace millrace::testing {
namespace {

// Micro-batch after micro-batch through all stages, each with the version of its weights that the schedule gives it:
// every version is kept. Slow, and it knows nothing of stashes, messages or rounds.
class Emulation {
 public:
  Emulation(const Graph& graph, const Plan& plan, const RunSettings& settings, const dataset::Source& source)
      : graph_(graph),
        settings_(settings),
        source_(source),
        micro_batches_(plan.pipelines[0].micro_batches),
        rows_(settings.batch / micro_batches_),
        device_(kernels::make_device(settings.train.kernels, settings.train.precision)) {
    for (const ::millrace::Stage& of : plan.pipelines[0].stages) {
      auto& stage = *stages_.emplace_back(std::make_unique<Stage>(graph, of.ops, settings.train));
      kernels::CompileOptions options;
      options.rows = rows_;
      options.seed = settings.train.seed;
      stage.executable = device_->compile(stage.graph, stage.parameters, options);
      stage.keep();
    }
  }

  /// `fresh_from`: iterations that begin with all that came before applied (drains). Returns the losses.
  std::vector<double> run(bool update_each, const std::vector<std::int64_t>& fresh_from) {
    dataset::SampleOrder order(settings_.train.seed, source_.samples(dataset::Split::train), settings_.batch,
                               settings_.tail);
    dataset::Batch batch;
    std::vector<double> losses;
    std::int64_t fresh = 0;
    const auto last = static_cast<std::int64_t>(stages_.size()) - 1;
    for (std::int64_t t = 0; t < settings_.train.iterations; ++t) {
      if (std::find(fresh_from.begin(), fresh_from.end(), t) != fresh_from.end()) fresh = t;
      order.batch(t, batch);
      std::array<double, runtime::kExactLimbs> loss{};  // as runs sum them: in any order the same
      for (std::int64_t k = 0; k < micro_batches_; ++k) {
        const std::int64_t j = t * micro_batches_ + k;
        for (std::int64_t s = 0; s <= last; ++s) {
          // pipedream: a stage d from the end has d micro-batches under way; 2bw: all but the last iteration's updates.
          const std::int64_t version =
              update_each ? std::max(fresh * micro_batches_, j - (last - s)) : std::max(fresh, t - 1);
          stages_[static_cast<std::size_t>(s)]->use(static_cast<std::size_t>(version));
        }
        forward(batch, t, k, loss);
        backward();
        for (auto& stage : stages_) {
          if (update_each) stage->update(settings_.train.optimizer.learning_rate, j + 1);
          if (!update_each && k + 1 == micro_batches_) stage->update(settings_.train.optimizer.learning_rate, t + 1);
        }
      }
      losses.push_back(runtime::value_of(loss));
    }
    return losses;
  }

  std::vector<std::vector<double>> values() const {
    std::vector<std::vector<double>> all(graph_.tensors().size());
    for (const auto& stage : stages_) {
      stage->use(stage->history.size() - 1);
      for (const TensorId tensor : stage->parameters.order()) {
        auto& values = all[static_cast<std::size_t>(tensor)];
        for (std::int64_t i = 0; i < stage->parameters.elements(tensor); ++i) {
          values.push_back(real(stage->parameters.value(tensor), i));
        }
      }
    }
    return all;
  }

 private:
  struct Stage {
    Stage(const Graph& whole, const std::vector<OpId>& ops, const runtime::TrainOptions& train)
        : graph(make_stage_graph(whole, ops)),
          parameters(graph, graph.parameters, train.precision),
          optimizer(whole, parameters, train.optimizer) {
      parameters.initialize(train.seed);
    }
    std::byte* values() { return static_cast<std::byte*>(parameters.value_range(0)); }
    void keep() { history.emplace_back(values(), values() + parameters.value_bytes()); }
    void use(std::size_t version) { std::copy(history[version].begin(), history[version].end(), values()); }
    void update(double rate, std::int64_t step) {
      use(history.size() - 1);
      parameters.combine_uses();
      optimizer.update(0, parameters.order().size(), {.learning_rate = rate, .step = step});
      parameters.zero_gradients();
      keep();
    }

    StageGraph graph;
    kernels::StageParameters parameters;
    runtime::Optimizer optimizer;
    std::unique_ptr<kernels::Executable> executable;
    std::vector<std::vector<std::byte>> history;  // values by version
  };

  bool wide() const { return settings_.train.precision == kernels::Precision::fp64; }
  double real(const void* data, std::int64_t i) const {
    return wide() ? static_cast<const double*>(data)[i] : static_cast<double>(static_cast<const float*>(data)[i]);
  }
  void set(void* data, std::int64_t i, double value) const {
    if (wide()) {
      static_cast<double*>(data)[i] = value;
    } else {
      static_cast<float*>(data)[i] = static_cast<float>(value);
    }
  }
  std::int64_t elements(TensorId tensor) const { return rows_ * graph_.tensor(tensor).shape.elements_per_sample(); }
  std::size_t bytes(TensorId tensor) const {
    return static_cast<std::size_t>(elements(tensor) * kernels::real_bytes(settings_.train.precision));
  }

  void fill(Stage& stage, TensorId tensor, std::span<const std::int64_t> ids) const {
    void* to = stage.executable->input(0, tensor);
    if (graph_.tensor(tensor).role == Role::label) {
      return source_.read_labels(dataset::Split::train, ids, static_cast<std::int32_t*>(to));
    }
    if (graph_.tensor(tensor).shape.element == ElementType::index) {
      return source_.read_inputs(dataset::Split::train, ids, static_cast<std::int32_t*>(to));
    }
    std::vector<float> read(static_cast<std::size_t>(elements(tensor)));
    source_.read_inputs(dataset::Split::train, ids, read.data());
    for (std::size_t i = 0; i < read.size(); ++i) set(to, static_cast<std::int64_t>(i), read[i]);
  }

  void forward(const dataset::Batch& batch, std::int64_t t, std::int64_t k,
               std::array<double, runtime::kExactLimbs>& loss) {
    const std::span<const std::int64_t> ids =
        std::span(batch.ids).subspan(static_cast<std::size_t>(k * rows_), static_cast<std::size_t>(rows_));
    const double weight = 1.0 / static_cast<double>(settings_.batch);
    for (auto& stage : stages_) {
      for (const TensorId input : stage->graph.inputs) {
        if (graph_.tensor(input).role != Role::activation) {
          fill(*stage, input, ids);
          continue;
        }
        for (auto& source : stages_) {
          const auto& outputs = source->graph.outputs;
          if (!std::binary_search(outputs.begin(), outputs.end(), input)) continue;
          std::memcpy(stage->executable->input(0, input), source->executable->output(0, input), bytes(input));
        }
      }
      stage->executable->forward(0, {t, ids, rows_, weight});
    }
    const TensorId output = graph_.op(graph_.loss()).outputs[0];
    Stage& last = *stages_.back();
    for (std::int64_t row = 0; row < rows_; ++row) {
      runtime::add_exactly(weight * real(last.executable->output(0, output), row), loss);
      set(last.executable->output_gradient(0, output), row, weight);
    }
  }

  void backward() {
    for (std::size_t s = stages_.size(); s-- > 0;) {
      Stage& stage = *stages_[s];
      for (const TensorId output : stage.graph.gradient_outputs) {
        bool first = true;
        for (std::size_t c = stages_.size(); c-- > 0;) {
          const auto& wanted = stages_[c]->graph.gradient_inputs;
          if (!std::binary_search(wanted.begin(), wanted.end(), output)) continue;
          const void* part = stages_[c]->executable->input_gradient(0, output);
          void* sum = stage.executable->output_gradient(0, output);
          for (std::int64_t i = 0; i < elements(output); ++i) {
            if (wide()) {
              static_cast<double*>(sum)[i] = (first ? 0.0 : static_cast<double*>(sum)[i]) + real(part, i);
            } else {
              static_cast<float*>(sum)[i] =
                  (first ? 0.0F : static_cast<float*>(sum)[i]) + static_cast<const float*>(part)[i];
            }
          }
          first = false;
        }
      }
      stage.executable->backward(0);
    }
  }

  const Graph& graph_;
  RunSettings settings_;
  const dataset::Source& source_;
  std::int64_t micro_batches_;
  std::int64_t rows_;
  std::unique_ptr<kernels::Device> device_;
  std::vector<std::unique_ptr<Stage>> stages_;
};

RunSettings settings(kernels::Precision precision) {
  RunSettings s = twelve_iterations();
  s.train.precision = precision;
  s.train.optimizer.kind = runtime::OptimizerKind::adam;
  s.train.optimizer.learning_rate = 0.01;
  return s;
}

void expect_emulated(const Graph& graph, const Grid& grid, const RunSettings& s,
                     const std::vector<std::int64_t>& fresh_from, bool bits) {
  const SmallSource source(graph, 90, 10);
  const Plan plan = make_plan(graph, grid);
  const TrainingRun run = on_ranks(grid.ranks(), graph, plan, source, s);
  if (world_rank() != 0) return;
  Emulation emulation(graph, plan, s, source);
  const std::vector<double> losses = emulation.run(grid.schedule == "pipedream", fresh_from);
  TrainingRun expected;
  expected.values = emulation.values();
  ASSERT_EQ(run.rows.size(), losses.size());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    EXPECT_EQ(run.rows[i].iteration, static_cast<std::int64_t>(i) + 1);
    if (bits) {
      EXPECT_EQ(run.rows[i].loss, losses[i]) << "iteration " << i;
    } else {
      EXPECT_NEAR(run.rows[i].loss, losses[i], 1e-5 * losses[i]) << "iteration " << i;
    }
  }
  if (bits) {
    EXPECT_EQ(run.values, expected.values);
  } else {
    EXPECT_LT(value_difference(run, expected), 1e-5);
  }
}

TEST(Asynchronous, EqualsASerialEmulationBitForBitInDouble) {
  for (const std::string schedule : {"pipedream", "pipedream-2bw"}) {
    for (const Grid& grid : {Grid{1, 1, 3, schedule}, Grid{1, 2, 2, schedule}, Grid{1, 3, 4, schedule},
                             Grid{1, 4, 6, schedule}, Grid{1, 3, 4, schedule, Recompute::all}}) {
      SCOPED_TRACE(schedule + " on " + std::to_string(grid.stages));
      RunSettings s = settings(kernels::Precision::fp64);
      expect_emulated(small_network("mlp"), grid, s, {}, true);
    }
  }
  // Fewer micro-batches than stages: several iterations are under way at once.
  expect_emulated(small_network("mlp"), {1, 4, 1, "pipedream"}, settings(kernels::Precision::fp64), {}, true);
  expect_emulated(small_network("mlp"), {1, 4, 2, "pipedream"}, settings(kernels::Precision::fp64), {}, true);
}

TEST(Asynchronous, EqualsItWithinRoundingInSingle) {
  for (const std::string schedule : {"pipedream", "pipedream-2bw"}) {
    SCOPED_TRACE(schedule);
    expect_emulated(small_network("lenet"), {1, 3, 4, schedule}, settings(kernels::Precision::fp32), {}, false);
  }
}

// All that is under way is applied before an evaluation (INTERFACES 7); the pipeline then fills anew.
TEST(Asynchronous, DrainsBeforeAnEvaluation) {
  for (const std::string schedule : {"pipedream", "pipedream-2bw"}) {
    SCOPED_TRACE(schedule);
    RunSettings s = settings(kernels::Precision::fp64);
    s.evaluate = true;
    s.train.evaluate_every = 5;
    expect_emulated(small_network("mlp"), {1, 3, 4, schedule}, s, {5, 10}, true);
  }
}

TEST(Asynchronous, ReplicasAgree) {
  const Graph graph = small_network("mlp");
  const SmallSource source(graph, 90, 10);
  for (const std::string schedule : {"pipedream", "pipedream-2bw"}) {
    SCOPED_TRACE(schedule);
    Plan plan = make_plan(graph, {1, 2, 4, schedule});
    const TrainingRun one = on_ranks(2, graph, plan, source, settings(kernels::Precision::fp64));
    for (std::size_t s = 0; s < 2; ++s) {
      plan.pipelines[0].stages[s].devices = {static_cast<int>(2 * s), static_cast<int>(2 * s + 1)};
      plan.pipelines[0].stages[s].shares = {0.5, 0.5};
    }
    expect_equal(on_ranks(4, graph, plan, source, settings(kernels::Precision::fp64)), one, 1e-10);
  }
}

TEST(Asynchronous, ClippingIsRefusedByName) {
  const Graph graph = small_network("mlp");
  const SmallSource source(graph, 90, 10);
  RunSettings s = settings(kernels::Precision::fp64);
  s.train.clip_norm = 1;
  if (world_rank() == 0) {
    EXPECT_THROW(train(graph, make_plan(graph, {1, 1, 2, "pipedream"}), source, s, MPI_COMM_SELF), InvalidInput);
  }
  patient_barrier();
}

}  // namespace
}  // namespace millrace::testing
