// Builds the graph of an operator case, makes its data, and runs it on a device.
#include <cmath>
#include <string>

#include "base/random.h"
#include "graph/graph_builder.h"
#include "tests/kernels/op_cases.h"
#include "tests/kernels/typed_memory.h"

namespace millrace::kernels::testing {
namespace {

constexpr std::uint64_t kSeed = 7;

/// Away from 0, where relu bends; exact in fp32.
std::vector<double> random_values(const std::string& name, std::int64_t count, double low = 0.1) {
  const Random random(kSeed, name);
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) {
    const double u = 2 * random.uniform(static_cast<std::uint64_t>(i)) - 1;
    values.push_back(static_cast<float>(u < 0 ? u - low : u + low));
  }
  return values;
}

}  // namespace

StageGraph OpCaseStage::stage() const { return make_stage_graph(graph, std::span(&op, 1)); }

OpCaseStage make_op_case_stage(const OpCase& op_case) {
  GraphBuilder builder(op_case.name);
  std::vector<TensorId> inputs;
  for (std::size_t i = 0; i < op_case.inputs.size(); ++i) {
    const OpCaseInput& described = op_case.inputs[i];
    const bool index = described.indices > 0;
    const TensorShape shape{described.dims, index ? ElementType::index : ElementType::real, true};
    const std::string name = "in" + std::to_string(i);
    if (described.label) {
      inputs.push_back(builder.label(name, shape));
    } else if (index) {
      inputs.push_back(builder.input(name, shape));
    } else {
      // Made by another stage, so that a gradient goes back to it.
      inputs.push_back(
          builder.add({.name = "source" + std::to_string(i), .kind = "gelu", .inputs = {builder.input(name, shape)}}));
    }
  }
  const TensorId output =
      builder.add({.name = "op", .kind = op_case.kind, .inputs = inputs, .attributes = op_case.attributes});
  if (!op_schema(op_case.kind).is_loss) builder.add({.name = "sink", .kind = "gelu", .inputs = {output}});
  OpCaseStage made;
  made.graph = builder.build();
  made.op = made.graph.find_op("op");
  return made;
}

OpCaseData op_case_data(const OpCase& op_case, const Graph& graph, OpId op) {
  OpCaseData data;
  const Operator& described = graph.op(op);
  for (std::size_t i = 0; i < op_case.inputs.size(); ++i) {
    const std::int64_t count = op_case.rows * element_count(op_case.inputs[i].dims);
    if (op_case.inputs[i].indices == 0) {
      data.inputs.push_back(random_values("input" + std::to_string(i), count));
      continue;
    }
    const Random random(kSeed, "index" + std::to_string(i));
    std::vector<double>& values = data.inputs.emplace_back();
    for (std::int64_t k = 0; k < count; ++k) {
      const auto bound = static_cast<std::uint64_t>(op_case.inputs[i].indices);
      values.push_back(static_cast<double>(random.below(bound, static_cast<std::uint64_t>(k))));
    }
  }
  for (const TensorId parameter : described.parameters) {
    const Tensor& tensor = graph.tensor(parameter);
    data.parameters.push_back(random_values(tensor.name, tensor.shape.elements_per_sample()));
  }
  for (const TensorId buffer : described.buffers) {
    const Tensor& tensor = graph.tensor(buffer);
    data.buffers.push_back(random_values(tensor.name, tensor.shape.elements_per_sample()));
    for (double& value : data.buffers.back()) value = value < 0 ? -value : value;  // variances
  }
  const std::int64_t per_row = graph.tensor(described.outputs[0]).shape.elements_per_sample();
  data.output_gradients.push_back(random_values("output_gradient", op_case.rows * per_row));
  for (std::int64_t i = op_case.valid_rows * per_row; i < op_case.rows * per_row; ++i) {
    data.output_gradients[0][static_cast<std::size_t>(i)] = 0;
  }
  return data;
}

OpCaseResult run_op_case(const OpCase& op_case, const OpCaseData& data, Device& device, Precision precision,
                         BackwardCall backward) {
  const OpCaseStage made = make_op_case_stage(op_case);
  const StageGraph stage = made.stage();
  const Operator& op = made.graph.op(made.op);

  std::vector<TensorId> order(op.parameters);
  order.insert(order.end(), op.buffers.begin(), op.buffers.end());
  StageParameters parameters(stage, order, precision);
  if (!data.parameter_gradients.empty()) parameters.zero_gradients();
  const Precision kept = precision == Precision::bf16 ? Precision::fp32 : precision;
  const auto format = [&](TensorId id) { return format_of(made.graph.tensor(id), precision); };
  for (std::size_t i = 0; i < op.parameters.size(); ++i) {
    write(parameters.value(op.parameters[i]), data.parameters[i], kept);
    const bool adds = !data.parameter_gradients.empty();  // else what is there is nothing
    const auto count = static_cast<std::size_t>(parameters.elements(op.parameters[i]));
    write(parameters.gradient(op.parameters[i]), adds ? data.parameter_gradients[i] : std::vector<double>(count, NAN), kept);
  }
  for (std::size_t i = 0; i < op.buffers.size(); ++i) {
    write(parameters.value(op.buffers[i]), data.buffers[i], kept);
  }

  CompileOptions options;
  options.rows = op_case.rows;
  options.training = op_case.training;
  options.split_backward = backward == BackwardCall::split;
  options.seed = kSeed;
  const std::unique_ptr<Executable> executable = device.compile(stage, parameters, options);

  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    if (op_case.inputs[i].indices > 0) {
      write_indices(executable->input(0, op.inputs[i]), data.inputs[i]);
    } else {
      write(executable->input(0, op.inputs[i]), data.inputs[i], format(op.inputs[i]));
    }
  }
  std::vector<std::int64_t> samples;
  for (std::int64_t row = 0; row < op_case.rows; ++row) samples.push_back(op_case.first_sample + row);
  executable->forward(0, BatchContext{3, samples, op_case.valid_rows, 0.125});

  OpCaseResult result;
  for (const TensorId output : op.outputs) {
    const std::int64_t per_row = made.graph.tensor(output).shape.elements_per_sample();
    result.outputs.push_back(read(executable->output(0, output), op_case.rows * per_row, format(output)));
  }
  if (!op_case.training) return result;

  write(executable->output_gradient(0, op.outputs[0]), data.output_gradients[0], format(op.outputs[0]));
  if (backward == BackwardCall::split) {
    executable->backward_input(0);
  } else {
    executable->backward(0);
  }
  for (const TensorId input : op.inputs) {
    const Tensor& tensor = made.graph.tensor(input);
    const bool has_gradient = tensor.role == Role::activation;
    result.input_gradients.push_back(has_gradient
                                         ? read(executable->input_gradient(0, input),
                                                op_case.rows * tensor.shape.elements_per_sample(), format(input))
                                         : std::vector<double>{});
  }
  if (backward == BackwardCall::split) executable->backward_weight(0);
  parameters.combine_uses();
  for (const TensorId tensor : op.parameters) {
    result.parameter_gradients.push_back(read(parameters.gradient(tensor), parameters.elements(tensor), kept));
  }
  for (const TensorId tensor : op.buffers) {
    result.buffer_gradients.push_back(read(parameters.gradient(tensor), parameters.elements(tensor), kept));
  }
  return result;
}

}  // namespace millrace::kernels::testing
