// Compiles the stages of the network, fills their border, and carries what crosses between them.
#include "probe/network_sample.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <set>

#include "base/random.h"
#include "graph/data_range.h"
#include "graph/footprint.h"
#include "graph/width.h"
#include "kernels/add_values.h"
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
                             std::uint64_t seed, Stages stages)
    : graph_(graph),
      device_(device),
      seed_(seed),
      whole_(make_stage_graph(graph, all_operators(graph))),
      parameters_(whole_, stored(whole_), precision) {
  if (stages.empty()) stages.push_back(whole_.ops);
  for (const std::vector<OpId>& ops : stages) parts_.push_back({make_stage_graph(graph, ops), nullptr});
  connect();
  parameters_.initialize(seed);
}

void NetworkSample::connect() {
  std::map<TensorId, std::size_t> makers;
  for (std::size_t s = 0; s < parts_.size(); ++s) {
    const StageGraph& stage = parts_[s].graph;
    for (const TensorId input : stage.inputs) {
      if (graph_.tensor(input).role != Role::activation) continue;
      const bool gradient = std::binary_search(stage.gradient_inputs.begin(), stage.gradient_inputs.end(), input);
      messages_.push_back({input, makers.at(input), s, gradient, {}});
    }
    for (const TensorId output : stage.outputs) makers[output] = s;
  }
}

void NetworkSample::compile(std::int64_t rows) {
  for (Part& part : parts_) part.executable.reset();  // one size at a time is enough memory
  rows_ = rows;
  kernels::CompileOptions options;
  options.rows = rows;
  options.seed = seed_;
  samples_.resize(static_cast<std::size_t>(rows));
  std::iota(samples_.begin(), samples_.end(), 0);
  for (Part& part : parts_) {
    part.executable = device_.compile(part.graph, parameters_, options);
    for (const TensorId input : part.graph.inputs) {
      if (graph_.tensor(input).role != Role::activation) fill(part, input);
    }
  }
  for (Message& message : messages_) {
    const Bytes of_sample =
        tensor_bytes(graph_.tensor(message.tensor), kernels::carried_bytes(parameters_.precision()));
    message.data.resize(static_cast<std::size_t>(rows * of_sample.value()));
  }
  parameters_.discard_gradients();
}

void NetworkSample::observe(kernels::KernelObserver* observer) {
  observer_ = observer;
  for (Part& part : parts_) part.executable->observe_kernels(observer);
}

kernels::ExecutableBytes NetworkSample::bytes() const {
  kernels::ExecutableBytes sum{0, 0, 1};
  for (const Part& part : parts_) {
    sum.per_slot += part.executable->bytes().per_slot;
    sum.workspace += part.executable->bytes().workspace;
  }
  return sum;
}

void NetworkSample::fill(Part& part, TensorId input) {
  const Tensor& tensor = graph_.tensor(input);
  const Random random(seed_, "probe." + tensor.name);
  const std::int64_t count = tensor.shape.elements_per_sample() * rows_;
  void* to = part.executable->input(0, input);
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
  context.valid_rows = rows_;
  context.row_weight = 1.0 / static_cast<double>(rows_);
  for (std::size_t s = 0; s < parts_.size(); ++s) {
    Part& part = parts_[s];
    for (const Message& message : messages_) {
      if (message.to != s) continue;
      std::memcpy(part.executable->input(0, message.tensor), message.data.data(), message.data.size());
    }
    part.executable->forward(0, context);
    bool sends = false;
    for (Message& message : messages_) {
      if (message.from != s) continue;
      std::memcpy(message.data.data(), part.executable->output(0, message.tensor), message.data.size());
      sends = true;
    }
    if (sends && observer_ != nullptr) observer_->ran(part.graph.ops.back(), kernels::Pass::forward);
  }
  seed_loss();
}

void NetworkSample::backward() {
  for (std::size_t s = parts_.size(); s-- > 0;) {
    Part& part = parts_[s];
    std::set<TensorId> begun;  // gradients that one reader has given
    for (auto message = messages_.rbegin(); message != messages_.rend(); ++message) {  // the last reader's is first
      if (message->from != s || !message->has_gradient) continue;
      take_gradient(*message, begun.insert(message->tensor).second);
    }
    part.executable->backward(0);
    bool sends = false;
    for (Message& message : messages_) {
      if (message.to != s || !message.has_gradient) continue;
      std::memcpy(message.data.data(), part.executable->input_gradient(0, message.tensor), message.data.size());
      sends = true;
    }
    if (sends && observer_ != nullptr) observer_->ran(part.graph.ops.front(), kernels::Pass::backward_input);
  }
}

void NetworkSample::take_gradient(const Message& message, bool first) {
  void* const to = parts_[message.from].executable->output_gradient(0, message.tensor);
  if (first) {
    std::memcpy(to, message.data.data(), message.data.size());
  } else {
    const std::int64_t count = graph_.tensor(message.tensor).shape.elements_per_sample() * rows_;
    kernels::add_values(to, message.data.data(), count, parameters_.precision());
  }
}

void NetworkSample::seed_loss() {
  const auto has_loss = [&](const Part& part) {
    return std::binary_search(part.graph.ops.begin(), part.graph.ops.end(), graph_.loss());
  };
  Part& part = *std::find_if(parts_.begin(), parts_.end(), has_loss);
  void* gradient = part.executable->output_gradient(0, graph_.op(graph_.loss()).outputs[0]);
  const double weight = 1.0 / static_cast<double>(rows_);
  for (std::int64_t row = 0; row < rows_; ++row) {
    if (parameters_.precision() == kernels::Precision::fp64) {
      static_cast<double*>(gradient)[row] = weight;
    } else {
      static_cast<float*>(gradient)[row] = static_cast<float>(weight);
    }
  }
}

}  // namespace millrace::probe
