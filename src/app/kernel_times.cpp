// Compiles the network as one stage of one thread and listens to its kernels.
#include "app/kernel_times.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <numeric>

#include <dnnl.hpp>

#include "base/limits.h"
#include "dataset/synthetic_source.h"
#include "graph/data_range.h"
#include "kernels/device.h"
#include "runtime/threads.h"

namespace millrace::app {
namespace {

constexpr int kSteps = 4;  // the first warms up

double thread_seconds() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

std::size_t ops_of(const Graph& graph) { return static_cast<std::size_t>(graph.size()); }

/// Seconds of every kernel of one step.
class Stopwatch : public kernels::KernelObserver {
 public:
  explicit Stopwatch(std::size_t ops) : forward(ops), backward(ops) {}

  void start() {
    std::fill(forward.begin(), forward.end(), 0.0);
    std::fill(backward.begin(), backward.end(), 0.0);
    last_ = thread_seconds();
  }
  void ran(OpId op, kernels::Pass pass) override {
    const double now = thread_seconds();
    (pass == kernels::Pass::forward ? forward : backward)[static_cast<std::size_t>(op)] += now - last_;
    last_ = now;
  }

  std::vector<double> forward, backward;  // by operator

 private:
  double last_ = 0;
};

void keep_least(std::vector<double>& least, const std::vector<double>& times) {
  for (std::size_t i = 0; i < least.size(); ++i) least[i] = std::min(least[i], times[i]);
}

std::vector<TensorId> parameters_and_buffers(const StageGraph& stage) {
  std::vector<TensorId> order(stage.parameters);
  order.insert(order.end(), stage.buffers.begin(), stage.buffers.end());
  return order;
}

void fill_inputs(const Graph& graph, std::span<const std::int64_t> samples, kernels::Executable& executable) {
  const Tensor& input = graph.tensor(graph.inputs().front());
  const bool tokens = input.shape.element == ElementType::index;
  dataset::SampleFormat format;
  format.kind = tokens ? dataset::InputKind::index : dataset::InputKind::real;
  format.shape = input.shape.dims;
  format.labels_per_sample = graph.tensor(graph.labels().front()).shape.elements_per_sample();
  format.classes = label_classes(graph);
  const dataset::SyntheticSource source(1, format);
  void* const place = executable.input(0, graph.inputs().front());
  if (tokens) {
    source.read_inputs(dataset::Split::train, samples, static_cast<std::int32_t*>(place));
  } else {
    source.read_inputs(dataset::Split::train, samples, static_cast<float*>(place));
  }
  source.read_labels(dataset::Split::train, samples,
                     static_cast<std::int32_t*>(executable.input(0, graph.labels().front())));
}

}  // namespace

std::vector<KindTime> kernel_times(const Graph& graph, std::int64_t rows, std::shared_ptr<kernels::Variants> variants) {
  runtime::use_threads(1);
  std::vector<OpId> ops(ops_of(graph));
  std::iota(ops.begin(), ops.end(), 0);
  const StageGraph stage = make_stage_graph(graph, ops);
  const std::vector<TensorId> order = parameters_and_buffers(stage);
  kernels::StageParameters parameters(stage, order, kernels::Precision::fp32);
  parameters.initialize(1);
  const auto device = kernels::make_device("onednn", kernels::Precision::fp32, std::move(variants));
  kernels::CompileOptions options;
  options.rows = rows;
  const auto executable = device->compile(stage, parameters, options);

  std::vector<std::int64_t> samples(static_cast<std::size_t>(rows));
  std::iota(samples.begin(), samples.end(), 0);
  fill_inputs(graph, samples, *executable);
  const kernels::BatchContext context{0, samples, rows, 1.0 / static_cast<double>(rows), 0};
  auto* const weights = static_cast<float*>(executable->output_gradient(0, graph.op(graph.loss()).outputs[0]));
  std::fill_n(weights, rows, static_cast<float>(context.row_weight));

  Stopwatch watch(ops_of(graph));
  executable->observe_kernels(&watch);
  std::vector<double> forward(ops_of(graph), kNever), backward(ops_of(graph), kNever);
  for (int step = 0; step < kSteps; ++step) {
    parameters.discard_gradients();  // as an update does: the one contribution of a step overwrites
    watch.start();
    executable->forward(0, context);
    executable->backward(0);
    if (step == 0) continue;
    keep_least(forward, watch.forward);
    keep_least(backward, watch.backward);
  }
  std::map<std::string, KindTime> kinds;
  for (std::size_t i = 0; i < ops_of(graph); ++i) {
    KindTime& kind = kinds[graph.op(static_cast<OpId>(i)).schema->name];
    kind.forward_s += forward[i];
    kind.backward_s += backward[i];
  }
  std::vector<KindTime> result;
  for (auto& [name, kind] : kinds) {
    kind.kind = name;
    result.push_back(kind);
  }
  std::stable_sort(result.begin(), result.end(), [](const KindTime& a, const KindTime& b) {
    return a.forward_s + a.backward_s > b.forward_s + b.backward_s;
  });
  return result;
}

double step_flops(const Graph& graph, std::int64_t rows) {
  double flops = 0;
  for (std::size_t i = 0; i < ops_of(graph); ++i) {
    const Operator& op = graph.op(static_cast<OpId>(i));
    const OpFlops each = op.schema->flops(op.attributes, graph.shapes(static_cast<OpId>(i)));
    flops += each.forward + each.backward_input + each.backward_weight;
  }
  return flops * static_cast<double>(rows);
}

double matmul_peak() {
  constexpr std::int64_t kSize = 1024;
  constexpr int kTrials = 12;
  runtime::use_threads(1);
  const std::vector<float> a(kSize * kSize, 0.5F), b(kSize * kSize, 0.25F);
  std::vector<float> c(kSize * kSize);
  double best = kNever;
  for (int i = 0; i < kTrials; ++i) {
    const double start = thread_seconds();
    dnnl_sgemm('N', 'N', kSize, kSize, kSize, 1.0F, a.data(), kSize, b.data(), kSize, 0.0F, c.data(), kSize);
    best = std::min(best, thread_seconds() - start);
  }
  return 2.0 * kSize * kSize * kSize / best;
}

}  // namespace millrace::app
