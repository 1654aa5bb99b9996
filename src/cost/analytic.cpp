// Counts what each pass of an operator computes and moves, once; times are then a few multiplications.
#include "cost/analytic.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "cost/collectives.h"
#include "cost/precision.h"
#include "graph/footprint.h"
#include "graph/width.h"

namespace millrace::cost {
namespace {

// Kinds by which devices give their efficiency (INTERFACES 4).
constexpr std::array<std::string_view, 3> kEfficiencyKinds{"other", "conv", "matmul"};

constexpr std::array<std::string_view, 3> kConvolutions{"conv2d", "depthwise_conv2d", "conv_transpose2d"};
constexpr std::array<std::string_view, 4> kProducts{"linear", "batch_matmul", "attention", "lstm"};

std::size_t efficiency_kind(std::string_view operator_kind) {
  const auto is_in = [&](const auto& kinds) {
    return std::find(kinds.begin(), kinds.end(), operator_kind) != kinds.end();
  };
  return is_in(kConvolutions) ? 1 : is_in(kProducts) ? 2 : 0;
}

// Bytes of tensors, split into those that grow with rows and those that do not.
struct Volume {
  double per_row = 0;
  double once = 0;

  void add(const Tensor& tensor, std::int64_t real_bytes) {
    (tensor.shape.batched ? per_row : once) += static_cast<double>(tensor_bytes(tensor, real_bytes).value());
  }
};

}  // namespace

AnalyticCost::OpWork AnalyticCost::count(const Graph& graph, OpId op, std::int64_t real_bytes) {
  if (const OpFigures* figures = graph.figures(op)) {
    OpWork work;
    work.figures = figures;
    return work;
  }
  const Operator& node = graph.op(op);
  const OperandShapes shapes = graph.shapes(op);
  const OpFlops flops = node.schema->flops(node.attributes, shapes);
  const Saved saved = node.schema->saved(node.attributes, shapes);

  Volume inputs, outputs, parameters, read_back, input_gradients;
  for (const TensorId id : node.inputs) {
    inputs.add(graph.tensor(id), real_bytes);
    if (graph.tensor(id).role == Role::activation) input_gradients.add(graph.tensor(id), real_bytes);
  }
  for (const TensorId id : node.outputs) outputs.add(graph.tensor(id), real_bytes);
  for (const TensorId id : node.parameters) parameters.add(graph.tensor(id), real_bytes);
  for (const int i : saved.inputs) read_back.add(graph.tensor(node.inputs[static_cast<std::size_t>(i)]), real_bytes);
  for (const int i : saved.outputs) read_back.add(graph.tensor(node.outputs[static_cast<std::size_t>(i)]), real_bytes);
  read_back.per_row += static_cast<double>(saved.extra_reals_per_sample * wide_bytes(real_bytes));

  OpWork work;
  work.kind = efficiency_kind(node.schema->name);
  work.forward = {flops.forward, inputs.per_row + outputs.per_row, inputs.once + parameters.once, true};
  const double read_for_input = saved.input_gradient_needs_only_parameters ? 0.0 : read_back.per_row;
  work.backward_input = {flops.backward_input, outputs.per_row + read_for_input + input_gradients.per_row,
                         parameters.once, input_gradients.per_row > 0};
  work.backward_weight = {flops.backward_weight, outputs.per_row + read_back.per_row, parameters.once,
                          !node.parameters.empty()};
  return work;
}

AnalyticCost::AnalyticCost(const Graph& graph, const cluster::Cluster& cluster, const std::string& precision)
    : cluster_(&cluster) {
  const std::int64_t bytes = real_bytes(precision);
  bool counted = false;
  for (OpId op = 0; op < graph.size(); ++op) {
    work_.push_back(count(graph, op, bytes));
    counted = counted || work_.back().figures == nullptr;
  }
  for (const cluster::Device& device : cluster.devices()) {
    DeviceRate rate;
    rate.speed = device.speed;
    for (const std::string_view kind : kEfficiencyKinds) {
      if (counted) rate.flops.push_back(device.peak(precision).value() * device.reached(kind) * device.speed);
    }
    rate.bandwidth = device.bandwidth.value() * device.speed;
    rate.launch = device.launch;
    rates_.push_back(std::move(rate));
  }
}

Seconds AnalyticCost::time(const Work& work, std::size_t kind, double rows, const DeviceRate& rate) {
  if (!work.present) return Seconds{};
  const double compute = work.flops_per_row * rows / rate.flops[kind];
  const double move = (work.bytes_per_row * rows + work.bytes_once) / rate.bandwidth;
  return Seconds(std::max(compute, move)) + rate.launch;
}

OpTime AnalyticCost::op_time(OpId op, std::int64_t rows, int device) const {
  if (rows == 0) return {};
  const OpWork& work = work_[static_cast<std::size_t>(op)];
  const DeviceRate& rate = rates_[static_cast<std::size_t>(device)];
  const double count = static_cast<double>(rows);
  if (const OpFigures* figures = work.figures) {
    const double scale = count / rate.speed;
    return {Seconds(figures->forward_s * scale), Seconds(figures->backward_input_s * scale),
            Seconds(figures->backward_weight_s * scale)};
  }
  return {time(work.forward, work.kind, count, rate), time(work.backward_input, work.kind, count, rate),
          time(work.backward_weight, work.kind, count, rate)};
}

Seconds AnalyticCost::transfer_time(Bytes amount, int from, int to) const {
  return cluster_->link(from, to).time(amount);
}

Seconds AnalyticCost::all_reduce_time(Bytes amount, std::span<const int> devices) const {
  return cheapest_all_reduce(amount, devices, *cluster_);
}

}  // namespace millrace::cost
