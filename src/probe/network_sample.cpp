// Compiles the network as one stage and fills its border.
#include "probe/network_sample.h"

#include <algorithm>
#include <numeric>

#include "base/random.h"
#include "graph/data_range.h"
#include "graph/width.h"
#include "kernels/bf16/loops.h"

namespace millrace::probe {
namespace {

std::vector<OpId> all_operators(const Graph& graph) {
  std::vector<OpId> ops(static_cast<std::size_t>(graph.size()));
  std::iota(ops.begin(), ops.end(), 0);
  return ops;
}

std::vector<TensorId> stored(const StageGraph& stage) {
  std::vector<TensorId> order = stage.parameters;
  order.insert(order.end(), stage.buffers.begin(), stage.buffers.end());
  return order;
}

template <class Real>
void fill_reals(void* to, std::int64_t count, const Random& random) {
  // A cycle of values is as good as more of them, and costs less.
  constexpr std::int64_t kCycle = 4096;
  Real* values = static_cast<Real*>(to);
  const std::int64_t drawn = std::min(count, kCycle);
  for (std::int64_t i = 0; i < drawn; ++i) {
    values[i] = static_cast<Real>(random.normal(static_cast<std::uint64_t>(i)));
  }
  for (std::int64_t i = drawn; i < count; ++i) values[i] = values[i - kCycle];
}

}  // namespace

NetworkSample::NetworkSample(const Graph& graph, kernels::Device& device, kernels::Precision precision,
                             std::uint64_t seed)
    : graph_(graph),
      device_(device),
      seed_(seed),
      stage_(make_stage_graph(graph, all_operators(graph))),
      parameters_(stage_, stored(stage_), precision) {
  parameters_.initialize(seed);
}

void NetworkSample::compile(std::int64_t rows) {
  executable_.reset();  // one at a time is enough memory
  kernels::CompileOptions options;
  options.rows = rows;
  options.seed = seed_;
  executable_ = device_.compile(stage_, parameters_, options);
  samples_.resize(static_cast<std::size_t>(rows));
  std::iota(samples_.begin(), samples_.end(), 0);
  for (const TensorId input : stage_.inputs) fill(input);
  parameters_.zero_gradients();
}

void NetworkSample::fill(TensorId input) {
  const Tensor& tensor = graph_.tensor(input);
  const Random random(seed_, "probe." + tensor.name);
  const std::int64_t count = tensor.shape.elements_per_sample() * executable_->rows();
  void* to = executable_->input(0, input);
  if (tensor.shape.element == ElementType::index) {
    const std::int64_t bound = tensor.role == Role::label ? label_classes(graph_) : index_bound(graph_, input);
    const auto below = static_cast<std::uint64_t>(std::max<std::int64_t>(bound, 1));
    for (std::int64_t i = 0; i < count; ++i) {
      static_cast<std::int32_t*>(to)[i] = static_cast<std::int32_t>(random.below(below, static_cast<std::uint64_t>(i)));
    }
  } else if (parameters_.precision() == kernels::Precision::fp64) {
    fill_reals<double>(to, count, random);
  } else if (parameters_.precision() == kernels::Precision::bf16 && !is_wide(tensor)) {
    std::vector<float> values(static_cast<std::size_t>(count));
    fill_reals<float>(values.data(), count, random);
    kernels::narrow(values.data(), static_cast<kernels::Bf16*>(to), count);
  } else {
    fill_reals<float>(to, count, random);
  }
}

void NetworkSample::forward() {
  kernels::BatchContext context;
  context.samples = samples_;
  context.valid_rows = executable_->rows();
  context.row_weight = 1.0 / static_cast<double>(executable_->rows());
  executable_->forward(0, context);
  seed_loss();
}

void NetworkSample::seed_loss() {
  void* gradient = executable_->output_gradient(0, graph_.op(graph_.loss()).outputs[0]);
  const double weight = 1.0 / static_cast<double>(executable_->rows());
  for (std::int64_t row = 0; row < executable_->rows(); ++row) {
    if (parameters_.precision() == kernels::Precision::fp64) {
      static_cast<double*>(gradient)[row] = weight;
    } else {
      static_cast<float*>(gradient)[row] = static_cast<float>(weight);
    }
  }
}

}  // namespace millrace::probe
