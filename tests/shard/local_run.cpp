// Builds a graph of one operator and calls its kernel.
#include "tests/shard/local_run.h"

#include "graph/graph_builder.h"
#include "kernels/reference/reference_kernels.h"

namespace millrace::shard::testing {

LocalRun::LocalRun(const Operator& node, const Attributes& attributes, const std::vector<TensorShape>& inputs,
                   std::vector<std::int64_t> samples)
    : samples_(std::move(samples)) {
  GraphBuilder builder("part");
  std::vector<TensorId> ids;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = "in" + std::to_string(i);
    const bool label = node.schema->is_loss && inputs[i].element == ElementType::index;
    ids.push_back(label ? builder.label(name, inputs[i]) : builder.input(name, inputs[i]));
  }
  builder.add({.name = node.name, .kind = node.schema->name, .inputs = ids, .attributes = attributes});
  graph_ = builder.build();
  op_ = graph_.find_op(node.name);
  kernel_ = kernels::make_reference_kernel(graph_, op_, static_cast<std::int64_t>(samples_.size()),
                                           kernels::Precision::fp64, true, 7);
  // Whole doubles, so that the kernel's numbers are aligned.
  extra_.resize(static_cast<std::size_t>(kernel_->extra_bytes()));
  scratch_.resize(static_cast<std::size_t>(kernel_->scratch_bytes()));
}

std::vector<Numbers> LocalRun::forward(const std::vector<Numbers>& operands) {
  operands_ = operands;
  const Operator& op = graph_.op(op_);
  indices_.assign(op.inputs.size(), {});
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    if (graph_.tensor(op.inputs[i]).shape.element != ElementType::index) continue;
    for (const double number : operands[i]) indices_[i].push_back(static_cast<std::int32_t>(number));
  }
  outputs_.clear();
  for (const TensorId output : op.outputs) {
    outputs_.emplace_back(samples_.size() *
                          static_cast<std::size_t>(graph_.tensor(output).shape.elements_per_sample()));
  }
  buffer_gradients_.clear();
  for (const TensorId buffer : op.buffers) {
    buffer_gradients_.emplace_back(static_cast<std::size_t>(graph_.tensor(buffer).shape.elements_per_sample()));
  }
  call(nullptr, nullptr);
  return outputs_;
}

std::vector<Numbers> LocalRun::backward(const Numbers& output_gradient) {
  const Operator& op = graph_.op(op_);
  std::vector<Numbers> gradients;
  for (std::size_t i = 0; i < op.inputs.size() + op.parameters.size(); ++i) {
    const bool index = i < op.inputs.size() && !indices_[i].empty();
    gradients.emplace_back(index ? 0 : operands_[i].size());
  }
  call(&output_gradient, &gradients);
  return gradients;
}

void LocalRun::call(const Numbers* output_gradient, std::vector<Numbers>* gradients) {
  const Operator& op = graph_.op(op_);
  std::vector<const void*> inputs, parameters, buffers, output_gradients;
  std::vector<void*> outputs, input_gradients, parameter_gradients, buffer_gradients;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const bool index = !indices_[i].empty();
    inputs.push_back(index ? static_cast<const void*>(indices_[i].data()) : operands_[i].data());
    if (gradients != nullptr) input_gradients.push_back(index ? nullptr : (*gradients)[i].data());
  }
  for (std::size_t i = 0; i < op.parameters.size(); ++i) {
    parameters.push_back(operands_[op.inputs.size() + i].data());
    if (gradients != nullptr) parameter_gradients.push_back((*gradients)[op.inputs.size() + i].data());
  }
  for (std::size_t i = 0; i < op.buffers.size(); ++i) {
    buffers.push_back(operands_[op.inputs.size() + op.parameters.size() + i].data());
    buffer_gradients.push_back(buffer_gradients_[i].data());
  }
  for (Numbers& output : outputs_) outputs.push_back(output.data());
  if (output_gradient != nullptr) output_gradients.push_back(output_gradient->data());
  const auto rows = static_cast<std::int64_t>(samples_.size());
  const kernels::OpCall call{.rows = rows,
                             .valid_rows = rows,
                             .row_weight = 1.0 / static_cast<double>(rows),
                             .step = 3,
                             .samples = samples_,
                             .inputs = inputs,
                             .outputs = outputs,
                             .parameters = parameters,
                             .buffers = buffers,
                             .output_gradients = output_gradients,
                             .input_gradients = input_gradients,
                             .parameter_gradients = parameter_gradients,
                             .buffer_gradients = buffer_gradients,
                             .extra = extra_.data(),
                             .scratch = scratch_.data()};
  if (output_gradient == nullptr) {
    kernel_->forward(call);
    return;
  }
  kernel_->backward_input(call);
  if (!op.parameters.empty()) kernel_->backward_weight(call);
}

}  // namespace millrace::shard::testing
