// Rows of the border's buffers to and from executables of one row.
#include "kernels/sample_device.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "graph/footprint.h"
#include "kernels/arena.h"

namespace millrace::kernels {
namespace {

/// One tensor of the border: row-major for all rows of each slot.
class Border {
 public:
  Border(const Tensor& tensor, TensorId id, Precision precision, std::int64_t rows, int slots)
      : id_(id),
        row_bytes_(tensor_bytes(tensor, carried_bytes(precision)).value()),
        slot_bytes_(aligned(row_bytes_ * rows)),
        block_(slot_bytes_ * slots) {}

  TensorId id() const { return id_; }
  std::int64_t slot_bytes() const { return slot_bytes_; }
  std::byte* slot(int slot) const { return block_.at(slot * slot_bytes_); }
  void read(int slot, std::int64_t row, void* to) const {
    std::memcpy(to, this->slot(slot) + row * row_bytes_, static_cast<std::size_t>(row_bytes_));
  }
  void write(int slot, std::int64_t row, const void* from) {
    std::memcpy(this->slot(slot) + row * row_bytes_, from, static_cast<std::size_t>(row_bytes_));
  }

 private:
  TensorId id_;
  std::int64_t row_bytes_;
  std::int64_t slot_bytes_;
  Block block_;
};

Border& find(std::vector<Border>& borders, TensorId tensor) {
  return *std::find_if(borders.begin(), borders.end(), [&](const Border& b) { return b.id() == tensor; });
}

class SampleExecutable final : public Executable {
 public:
  SampleExecutable(const StageGraph& stage, StageParameters& parameters, const CompileOptions& options,
                   std::unique_ptr<Executable> inner, GradientTree& tree)
      : parameters_(parameters),
        options_(options),
        first_op_(stage.ops.front()),
        inner_(std::move(inner)),
        tree_(tree) {
    const auto make = [&](const std::vector<TensorId>& tensors, int slots, std::vector<Border>& into) {
      for (const TensorId id : tensors) {
        into.emplace_back(stage.graph->tensor(id), id, parameters.precision(), options.rows, slots);
      }
    };
    make(stage.inputs, options.slots, inputs_);
    make(stage.outputs, options.slots, outputs_);
    std::vector<TensorId> gradients;
    if (options.training) gradients = stage.gradient_outputs;
    const OpId loss = stage.graph->loss();
    if (options.training && std::binary_search(stage.ops.begin(), stage.ops.end(), loss)) {
      gradients.push_back(stage.graph->op(loss).outputs[0]);
    }
    make(gradients, options.slots, output_gradients_);
    if (options.training) make(stage.gradient_inputs, 1, input_gradients_);
    first_rows_.resize(static_cast<std::size_t>(options.slots));
  }

  std::int64_t rows() const override { return options_.rows; }

  ExecutableBytes bytes() const override {
    const ExecutableBytes inner = inner_->bytes();
    ExecutableBytes bytes{inner.per_slot * options_.rows, inner.workspace, options_.slots};
    for (const auto* borders : {&inputs_, &outputs_, &output_gradients_}) {
      for (const Border& border : *borders) bytes.per_slot += border.slot_bytes();
    }
    for (const Border& border : input_gradients_) bytes.workspace += border.slot_bytes();
    return bytes;
  }

  void* input(int slot, TensorId tensor) override { return find(inputs_, tensor).slot(slot); }
  const void* output(int slot, TensorId tensor) override { return find(outputs_, tensor).slot(slot); }
  void* output_gradient(int slot, TensorId tensor) override { return find(output_gradients_, tensor).slot(slot); }
  const void* input_gradient(int, TensorId tensor) override { return find(input_gradients_, tensor).slot(0); }

  void forward(int slot, const BatchContext& context) override {
    first_rows_[static_cast<std::size_t>(slot)] = context.first_row;
    for (std::int64_t row = 0; row < options_.rows; ++row) {
      const int inner = inner_slot(slot, row);
      for (const Border& border : inputs_) border.read(slot, row, inner_->input(inner, border.id()));
      BatchContext one = context;
      const auto position = static_cast<std::size_t>(row);
      one.samples =
          position < context.samples.size() ? context.samples.subspan(position, 1) : std::span<const std::int64_t>();
      one.valid_rows = row < context.valid_rows ? 1 : 0;
      inner_->forward(inner, one);
      for (Border& border : outputs_) border.write(slot, row, inner_->output(inner, border.id()));
    }
  }

  void backward(int slot) override {
    for (std::int64_t row = 0; row < options_.rows; ++row) {
      const int inner = begin_backward(slot, row);
      parameters_.zero_gradients();
      inner_->backward(inner);
      end_backward(inner, row);
      add_gradients_of(slot, row);
    }
  }

  void backward_input(int slot) override {
    for (std::int64_t row = 0; row < options_.rows; ++row) {
      const int inner = begin_backward(slot, row);
      inner_->backward_input(inner);
      end_backward(inner, row);
    }
  }

  void backward_weight(int slot) override {
    for (std::int64_t row = 0; row < options_.rows; ++row) {
      parameters_.zero_gradients();
      inner_->backward_weight(inner_slot(slot, row));
      add_gradients_of(slot, row);
    }
  }

  // The tree takes all gradients of a row at once: with the last part.
  void backward_weight_of(int slot, std::span<const OpId> ops) override {
    if (ops.front() == first_op_) backward_weight(slot);
  }

  void observe_kernels(KernelObserver* observer) override { inner_->observe_kernels(observer); }

 private:
  int inner_slot(int slot, std::int64_t row) const { return static_cast<int>(slot * options_.rows + row); }

  int begin_backward(int slot, std::int64_t row) {
    const int inner = inner_slot(slot, row);
    for (const Border& border : output_gradients_) border.read(slot, row, inner_->output_gradient(inner, border.id()));
    return inner;
  }
  void end_backward(int inner, std::int64_t row) {
    for (Border& border : input_gradients_) border.write(0, row, inner_->input_gradient(inner, border.id()));
  }
  void add_gradients_of(int slot, std::int64_t row) {
    if (parameters_.order().empty()) return;
    tree_.add(first_rows_[static_cast<std::size_t>(slot)] + row, parameters_.gradient_range(0));
  }

  StageParameters& parameters_;
  CompileOptions options_;
  OpId first_op_;
  std::unique_ptr<Executable> inner_;
  GradientTree& tree_;
  std::vector<Border> inputs_, outputs_, output_gradients_, input_gradients_;
  std::vector<std::int64_t> first_rows_;  // by slot, in the global batch
};

}  // namespace

std::unique_ptr<Executable> SampleDevice::compile(const StageGraph& stage, StageParameters& parameters,
                                                  const CompileOptions& options) {
  CompileOptions one = options;
  one.rows = 1;
  one.slots = static_cast<int>(options.slots * options.rows);
  one.plain = true;
  return std::make_unique<SampleExecutable>(stage, parameters, options, device_->compile(stage, parameters, one),
                                            tree(parameters));
}

GradientTree& SampleDevice::tree(const StageParameters& parameters) {
  const std::int64_t elements = parameters.gradient_bytes() / real_bytes(parameters.precision());
  return trees_.try_emplace(&parameters, elements, parameters.precision()).first->second;
}

}  // namespace millrace::kernels
