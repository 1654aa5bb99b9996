// Fills the borders of a stage with random numbers and calls it as a schedule would.
#include "tests/kernels/onednn/stage_run.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.h"
#include "tests/kernels/typed_memory.h"

namespace millrace::kernels::testing {
namespace {

constexpr std::uint64_t kSeed = 11;

/// Real numbers in [-1, 1), exact in fp32; zero from `valid` on.
std::vector<double> random_values(const std::string& name, std::int64_t count, std::int64_t valid) {
  const Random random(kSeed, name);
  std::vector<double> values(static_cast<std::size_t>(count), 0.0);
  for (std::int64_t i = 0; i < valid; ++i) {
    values[static_cast<std::size_t>(i)] = static_cast<float>(2 * random.uniform(static_cast<std::uint64_t>(i)) - 1);
  }
  return values;
}

/// The smallest table that an index tensor of the stage is read with.
std::int64_t index_bound(const StageGraph& stage, TensorId tensor) {
  std::int64_t bound = 1 << 30;
  for (const OpId reader : stage.graph->consumers(tensor)) {
    const Operator& op = stage.graph->op(reader);
    const bool embedding = op.schema->name == "embedding";
    bound = std::min(
        bound, embedding ? op.attributes.integer("vocabulary") : stage.graph->tensor(op.inputs[0]).shape.dims.back());
  }
  return bound;
}

std::vector<TensorId> storage_order(const StageGraph& stage) {
  std::vector<TensorId> order(stage.parameters);
  order.insert(order.end(), stage.buffers.begin(), stage.buffers.end());
  return order;
}

}  // namespace

StageGraph part_of(const Graph& graph, OpId first, OpId last) {
  std::vector<OpId> ops(static_cast<std::size_t>(last - first));
  std::iota(ops.begin(), ops.end(), first);
  return make_stage_graph(graph, ops);
}

StageGraph whole_stage(const Graph& graph) { return part_of(graph, 0, static_cast<OpId>(graph.size())); }

PreparedStage::PreparedStage(const StageGraph& stage_graph, Device& device, Precision precision,
                             const StageRunOptions& run_options)
    : stage(stage_graph), options(run_options), parameters(stage, storage_order(stage), precision) {
  parameters.initialize(5);
  for (const TensorId id : stage.parameters) {  // what lies where gradients will be is nothing
    if (stage.graph->tensor(id).role == Role::buffer) continue;
    write(parameters.gradient(id), std::vector<double>(static_cast<std::size_t>(parameters.elements(id)), NAN),
          precision == Precision::bf16 ? Precision::fp32 : precision);
  }
  CompileOptions compile;
  compile.rows = options.rows;
  compile.slots = options.slots;
  compile.training = options.training;
  compile.split_backward = options.split;
  compile.recompute = options.recompute;
  compile.plain = options.plain;
  executable = device.compile(stage, parameters, compile);
  samples.resize(static_cast<std::size_t>(options.rows));
  std::iota(samples.begin(), samples.end(), 40);

  const auto count = [&](TensorId id) { return options.rows * stage.graph->tensor(id).shape.elements_per_sample(); };
  const auto valid = [&](TensorId id) { return count(id) / options.rows * options.valid_rows; };
  for (int slot = 0; slot < options.slots; ++slot) {
    const std::string suffix = "@" + std::to_string(slot);
    for (const TensorId id : stage.inputs) {
      const Tensor& tensor = stage.graph->tensor(id);
      std::vector<double> values = random_values(tensor.name + suffix, count(id), count(id));
      if (tensor.shape.element == ElementType::real) {
        write(executable->input(slot, id), values, format_of(tensor, precision));
      } else {
        const auto bound = static_cast<double>(index_bound(stage, id));
        for (double& value : values) value = std::floor((value + 1) / 2 * bound);
        write_indices(executable->input(slot, id), values);
      }
    }
    if (!options.training) continue;
    for (const TensorId id : stage.gradient_outputs) {
      write(executable->output_gradient(slot, id),
            random_values(stage.graph->tensor(id).name + ".gradient" + suffix, count(id), valid(id)),
            format_of(stage.graph->tensor(id), precision));
    }
    const OpId loss = stage.graph->loss();
    if (std::binary_search(stage.ops.begin(), stage.ops.end(), loss)) {
      std::vector<double> weights(static_cast<std::size_t>(options.rows), 0.0);
      std::fill_n(weights.begin(), options.valid_rows, 0.125);
      const TensorId output = stage.graph->op(loss).outputs[0];
      write(executable->output_gradient(slot, output), weights, format_of(stage.graph->tensor(output), precision));
    }
  }
}

void PreparedStage::forward(int slot) {
  executable->forward(slot, BatchContext{3, samples, options.valid_rows, 0.125});
}

void PreparedStage::backward(int slot) {
  if (options.split) {
    executable->backward_input(slot);
    executable->backward_weight(slot);
  } else {
    executable->backward(slot);
  }
}

StageRun run_stage(const StageGraph& stage, Device& device, Precision precision, const StageRunOptions& options) {
  PreparedStage prepared(stage, device, precision, options);
  for (int slot = 0; slot < options.slots; ++slot) prepared.forward(slot);
  StageRun run;
  const int last = options.slots - 1;
  const auto values = [&](const void* memory, TensorId id) {
    const Tensor& tensor = stage.graph->tensor(id);
    return read(memory, options.rows * tensor.shape.elements_per_sample(), format_of(tensor, precision));
  };
  for (const TensorId id : stage.outputs) {
    run.outputs[stage.graph->tensor(id).name] = values(prepared.executable->output(last, id), id);
  }
  if (!options.training) return run;
  for (int slot = 0; slot < options.slots; ++slot) prepared.backward(slot);
  for (const TensorId id : stage.gradient_inputs) {
    run.input_gradients[stage.graph->tensor(id).name] = values(prepared.executable->input_gradient(last, id), id);
  }
  prepared.parameters.combine_uses();
  for (const TensorId id : prepared.parameters.order()) {
    run.parameter_gradients[stage.graph->tensor(id).name] =
        read(prepared.parameters.gradient(id), prepared.parameters.elements(id),
             format_of(stage.graph->tensor(id), precision));
  }
  return run;
}

}  // namespace millrace::kernels::testing
