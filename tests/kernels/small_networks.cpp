// Builds the small network and carries its tensors from stage to stage as a runtime would.
#include "tests/kernels/small_networks.h"

#include <memory>

#include "base/random.h"
#include "graph/graph_builder.h"
#include "graph/stage_graph.h"
#include "tests/kernels/typed_memory.h"

namespace millrace::kernels::testing {
namespace {

constexpr std::uint64_t kNetworkSeed = 11;

/// A stage that runs, with what it was made from.
struct Stage {
  StageGraph graph;
  std::vector<TensorId> order;
  std::unique_ptr<StageParameters> parameters;
  std::unique_ptr<Executable> executable;
};

/// Border values by tensor.
using Tensors = std::map<TensorId, std::vector<double>>;

Tensors batch(const Graph& graph, std::int64_t rows) {
  Tensors data;
  const Random random(kNetworkSeed, "batch");
  for (const TensorId input : graph.inputs()) {
    for (std::int64_t i = 0; i < rows * graph.tensor(input).shape.elements_per_sample(); ++i) {
      data[input].push_back(static_cast<float>(random.normal(static_cast<std::uint64_t>(i))));
    }
  }
  for (const TensorId label : graph.labels()) {
    for (std::int64_t i = 0; i < rows; ++i) data[label].push_back(static_cast<double>(i % 6));
  }
  return data;
}

double sum_of(double a, double b, Precision format) {
  if (format == Precision::fp64) return a + b;
  const float sum = static_cast<float>(a) + static_cast<float>(b);
  return format == Precision::bf16 ? from_bf16(to_bf16(sum)) : sum;
}

}  // namespace

Graph skip_network(bool third_reader) {
  GraphBuilder builder("skips");
  const TensorId x = builder.input("x", {{6}, ElementType::real, true});
  const TensorId label = builder.label("label", {{}, ElementType::index, true});
  const Attributes six{{"out_features", std::int64_t{6}}};
  const TensorId a = builder.add({.name = "a", .kind = "linear", .inputs = {x}, .attributes = six});
  const TensorId b = builder.add({.name = "b", .kind = "relu", .inputs = {a}});
  const TensorId c = builder.add({.name = "c", .kind = "linear", .inputs = {b}, .attributes = six});
  TensorId d = builder.add({.name = "d", .kind = "add", .inputs = {b, c}});
  if (third_reader) d = builder.add({.name = "e", .kind = "multiply", .inputs = {d, b}});
  const TensorId f = builder.add({.name = "f", .kind = "layer_norm", .inputs = {d}});
  const TensorId g = builder.add({.name = "g", .kind = "dropout", .inputs = {f}, .attributes = {{"probability", 0.3}}});
  const TensorId h = builder.add({.name = "h",
                                  .kind = "linear",
                                  .inputs = {g},
                                  .attributes = six,
                                  .shared_parameters = {builder.find_tensor("c.weight"), -1}});
  builder.add({.name = "loss", .kind = "cross_entropy", .inputs = {h, label}});
  return builder.build();
}

PipelineRun run_pipeline(const Graph& graph, const std::vector<OpId>& cuts, Device& device, Precision precision,
                         std::int64_t rows, double shift, const std::string& shifted, std::size_t shifted_element) {
  std::vector<OpId> bounds{0};
  bounds.insert(bounds.end(), cuts.begin(), cuts.end());
  bounds.push_back(static_cast<OpId>(graph.size()));

  std::vector<Stage> stages(bounds.size() - 1);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    Stage& stage = stages[s];
    std::vector<OpId> ops;
    for (OpId op = bounds[s]; op < bounds[s + 1]; ++op) ops.push_back(op);
    stage.graph = make_stage_graph(graph, ops);
    stage.order = stage.graph.parameters;
    stage.parameters = std::make_unique<StageParameters>(stage.graph, stage.order, precision);
    stage.parameters->initialize(kNetworkSeed);
    for (const TensorId tensor : stage.order) {
      if (graph.tensor(tensor).name != shifted) continue;
      static_cast<double*>(stage.parameters->value(tensor))[shifted_element] += shift;
    }
    CompileOptions options;
    options.rows = rows;
    stage.executable = device.compile(stage.graph, *stage.parameters, options);
  }

  const auto format = [&](TensorId id) { return format_of(graph.tensor(id), precision); };
  const auto elements = [&](TensorId id) { return rows * graph.tensor(id).shape.elements_per_sample(); };
  std::vector<std::int64_t> samples;
  for (std::int64_t row = 0; row < rows; ++row) samples.push_back(40 + row);
  PipelineRun run;
  Tensors values = batch(graph, rows);
  for (Stage& stage : stages) {
    for (const TensorId input : stage.graph.inputs) {
      void* to = stage.executable->input(0, input);
      const bool index = graph.tensor(input).shape.element == ElementType::index;
      index ? write_indices(to, values.at(input)) : write(to, values.at(input), format(input));
    }
    stage.executable->forward(0, BatchContext{2, samples, rows, 1.0 / static_cast<double>(rows)});
    for (const TensorId output : stage.graph.outputs) {
      values[output] = read(stage.executable->output(0, output), elements(output), format(output));
    }
  }
  const TensorId loss = graph.op(graph.loss()).outputs[0];
  run.loss = values.at(loss);

  Tensors gradients;
  gradients[loss] = std::vector<double>(static_cast<std::size_t>(rows), 1.0 / static_cast<double>(rows));
  for (std::size_t s = stages.size(); s-- > 0;) {
    Stage& stage = stages[s];
    for (const TensorId output : stage.graph.outputs) {
      if (gradients.contains(output)) {
        write(stage.executable->output_gradient(0, output), gradients.at(output), format(output));
      }
    }
    stage.executable->backward(0);
    for (const TensorId input : stage.graph.gradient_inputs) {
      const std::vector<double> part = read(stage.executable->input_gradient(0, input), elements(input), format(input));
      std::vector<double>& sum = gradients[input];
      sum.resize(part.size());
      for (std::size_t i = 0; i < part.size(); ++i) sum[i] = sum_of(sum[i], part[i], format(input));
    }
    stage.parameters->combine_uses();
  }
  for (Stage& stage : stages) {  // tied: in operator order
    for (const TensorId tensor : stage.order) {
      std::vector<double>& sum = run.gradients[graph.tensor(tensor).name];
      const std::vector<double> part =
          read(stage.parameters->gradient(tensor), stage.parameters->elements(tensor), format(tensor));
      sum.resize(part.size());
      for (std::size_t i = 0; i < part.size(); ++i) sum[i] = sum_of(sum[i], part[i], format(tensor));
    }
  }
  return run;
}

}  // namespace millrace::kernels::testing
