// Copies of a call's operands: in scratch, one behind the other, for the length of the call. Passes on bf16 need none.
#include "kernels/bf16/bf16_factory.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "graph/width.h"
#include "kernels/arena.h"
#include "kernels/bf16/copies.h"

namespace millrace::kernels {
namespace {

constexpr std::int64_t kFp32Bytes = 4;

/// A tensor that lies in bf16.
struct Bf16Operand {
  std::size_t position = 0;
  std::int64_t elements = 0;  // in its layout
  std::int64_t bytes() const { return aligned(elements * kFp32Bytes); }
};

/// What an adapter is made from.
struct Bf16Setup {
  const Operator& op;
  std::vector<Bf16Operand> inputs, outputs;
  Saved saved;
  bool reads_outputs_back = false;  // backward is given them
  std::int64_t weight = 0;          // elements of the first parameter, where it is rounded
  std::vector<bool> gradients{};    // by input: there may be one
  Bf16Copies copies;
  Bf16Kernel native{};  // does some passes without copies
};

class Bf16Adapter : public OpKernel {
 public:
  Bf16Adapter(std::unique_ptr<OpKernel> inner, Bf16Setup setup)
      : inner_(std::move(inner)),
        setup_(std::move(setup)),
        own_scratch_(copied_bytes()),
        input_places_(setup_.op.inputs.size()),
        output_places_(setup_.op.outputs.size()),
        input_gradient_places_(setup_.op.inputs.size()),
        output_gradient_places_(setup_.op.outputs.size()),
        parameter_places_(setup_.op.parameters.size()) {}

  void forward(const OpCall& call) override {
    if (setup_.native.forward) return setup_.native.kernel->forward(call);
    OpCall inner = begin(call, true);
    inner.inputs = widened(call.inputs, input_places_, setup_.inputs);
    inner.outputs = places_for(call.outputs, output_places_, setup_.outputs);
    inner_->forward(inner);
    put_back(call.outputs, output_places_, setup_.outputs);
  }

  void backward_input(const OpCall& call) override {
    if (setup_.native.backward_input) return setup_.native.kernel->backward_input(call);
    OpCall read = call;
    if (setup_.saved.input_gradient_needs_only_parameters) read.inputs = {};
    inner_->backward_input(begin_backward(read, true));
    put_back(call.input_gradients, input_gradient_places_, setup_.inputs);
  }

  void backward_weight(const OpCall& call) override {
    if (setup_.native.backward_weight) return setup_.native.kernel->backward_weight(call);
    OpCall read = call;
    read.input_gradients = {};
    inner_->backward_weight(begin_backward(read, false));
  }

  bool overwrites_gradient() const override { return inner_->overwrites_gradient(); }
  bool overwrites_input() const override { return inner_->overwrites_input(); }
  bool can_overwrite() const override { return inner_->can_overwrite(); }
  std::int64_t extra_bytes() const override { return inner_->extra_bytes(); }
  std::int64_t scratch_bytes() const override {
    const Bf16Kernel& native = setup_.native;
    const std::int64_t copied = native.all() ? 0 : own_scratch_ + inner_->scratch_bytes();
    return std::max(copied, native.kernel ? native.kernel->scratch_bytes() : 0);
  }

 private:
  static std::int64_t bytes_of(const std::vector<Bf16Operand>& operands) {
    std::int64_t bytes = 0;
    for (const Bf16Operand& operand : operands) bytes += operand.bytes();
    return bytes;
  }

  static bool holds(const std::vector<int>& list, std::size_t position) {
    return std::find(list.begin(), list.end(), static_cast<int>(position)) != list.end();
  }

  std::int64_t weight_bytes() const { return aligned(setup_.weight * kFp32Bytes); }

  std::int64_t forward_bytes() const { return weight_bytes() + bytes_of(setup_.inputs) + bytes_of(setup_.outputs); }

  std::int64_t copied_bytes() const {
    const Bf16Kernel& native = setup_.native;
    const bool backward = !native.backward_input || !native.backward_weight;
    return std::max(native.forward ? 0 : forward_bytes(), backward ? backward_bytes() : 0);
  }

  std::int64_t backward_bytes() const {
    std::int64_t bytes = weight_bytes() + bytes_of(setup_.outputs);  // their gradients
    if (setup_.reads_outputs_back) bytes += bytes_of(setup_.outputs);
    bool shares = false;
    for (const Bf16Operand& operand : setup_.inputs) {
      if (holds(setup_.saved.inputs, operand.position)) bytes += operand.bytes();
      if (!setup_.gradients[operand.position]) continue;
      if (!shares && may_share(operand)) {
        shares = true;
      } else {
        bytes += operand.bytes();
      }
    }
    return bytes;
  }

  /// Whether the gradient of an input may be written where something lies that its kernel then needs no more.
  bool over_gradient(const Bf16Operand& input) const {
    return inner_->overwrites_gradient() && !setup_.outputs.empty() && setup_.outputs[0].position == 0 &&
           setup_.outputs[0].elements == input.elements;
  }
  bool over_values(const Bf16Operand& input) const {
    return inner_->overwrites_input() && input.position == 0 && holds(setup_.saved.inputs, 0);
  }
  bool may_share(const Bf16Operand& input) const { return over_gradient(input) || over_values(input); }

  std::byte* take(std::int64_t bytes) { return std::exchange(next_, next_ + bytes); }

  OpCall begin(const OpCall& call, bool reads_weight) {
    next_ = static_cast<std::byte*>(call.scratch);
    OpCall inner = call;
    if (setup_.weight > 0 && reads_weight) {
      std::copy(call.parameters.begin(), call.parameters.end(), parameter_places_.begin());
      std::byte* const rounded = take(weight_bytes());
      setup_.copies.round(call.parameters[0], rounded, setup_.weight);
      parameter_places_[0] = rounded;
      inner.parameters = parameter_places_;
    }
    inner.scratch = static_cast<std::byte*>(call.scratch) + own_scratch_;
    return inner;
  }

  OpCall begin_backward(const OpCall& call, bool reads_weight) {
    OpCall inner = begin(call, reads_weight);
    inner.inputs = widened(call.inputs, input_places_, setup_.inputs);
    inner.outputs = widened(call.outputs, output_places_, setup_.outputs);
    inner.output_gradients = widened(call.output_gradients, output_gradient_places_, setup_.outputs);
    inner.input_gradients = places_for_gradients(call.input_gradients);
    return inner;
  }

  template <class Pointer>
  std::span<Pointer const> widened(std::span<Pointer const> given, std::vector<Pointer>& places,
                                   const std::vector<Bf16Operand>& operands) {
    const std::span<Pointer const> all = places_for(given, places, operands);
    for (const Bf16Operand& operand : operands) {
      const std::size_t i = operand.position;
      if (i < given.size() && given[i]) setup_.copies.widen(given[i], mutable_bytes(places[i]), operand.elements);
    }
    return all;
  }

  static std::byte* mutable_bytes(const void* scratch) { return static_cast<std::byte*>(const_cast<void*>(scratch)); }

  template <class Pointer>
  std::span<Pointer const> places_for(std::span<Pointer const> given, std::vector<Pointer>& places,
                                      const std::vector<Bf16Operand>& operands) {
    std::copy(given.begin(), given.end(), places.begin());
    for (const Bf16Operand& operand : operands) {
      if (operand.position >= given.size() || !given[operand.position]) continue;
      places[operand.position] = take(operand.bytes());
    }
    return std::span<Pointer const>(places).first(given.size());
  }

  // One of them lies over what its kernel overwrites, as it would without copies.
  std::span<void* const> places_for_gradients(std::span<void* const> given) {
    std::copy(given.begin(), given.end(), input_gradient_places_.begin());
    bool shares = false;
    for (const Bf16Operand& operand : setup_.inputs) {
      const std::size_t i = operand.position;
      if (i >= given.size() || !given[i]) continue;
      if (!shares && may_share(operand)) {
        shares = true;
        input_gradient_places_[i] =
            mutable_bytes(over_gradient(operand) ? output_gradient_places_[0] : input_places_[i]);
      } else {
        input_gradient_places_[i] = take(operand.bytes());
      }
    }
    return std::span<void* const>(input_gradient_places_).first(given.size());
  }

  void put_back(std::span<void* const> given, const std::vector<void*>& places,
                const std::vector<Bf16Operand>& operands) const {
    for (const Bf16Operand& operand : operands) {
      const std::size_t i = operand.position;
      if (i < given.size() && given[i]) setup_.copies.narrow(places[i], given[i], operand.elements);
    }
  }

  std::unique_ptr<OpKernel> inner_;
  Bf16Setup setup_;
  std::int64_t own_scratch_;
  std::byte* next_ = nullptr;  // free scratch of the call under way
  std::vector<const void*> input_places_;
  std::vector<void*> output_places_, input_gradient_places_;
  std::vector<const void*> output_gradient_places_, parameter_places_;
};

class Bf16Factory : public KernelFactory {
 public:
  Bf16Factory(const Graph& graph, std::unique_ptr<KernelFactory> inner, int threads)
      : graph_(graph), inner_(std::move(inner)), copies_(threads) {}

  std::unique_ptr<OpKernel> make(OpId id) override {
    auto inner = inner_->make(id);
    if (absorbed(id)) return inner;
    const Operator& op = graph_.op(id);
    const bool matrix = op.schema->name == "linear" || op.schema->name == "conv2d";
    Bf16Setup setup{.op = op,
                    .inputs = operands(op.inputs),
                    .outputs = operands(op.outputs),
                    .saved = op.schema->saved(op.attributes, graph_.shapes(id)),
                    .weight = matrix ? graph_.tensor(op.parameters[0]).shape.elements_per_sample() : 0,
                    .copies = copies_};
    const auto readers = graph_.consumers(op.outputs[0]);
    setup.reads_outputs_back = !setup.saved.outputs.empty() ||
                               std::any_of(readers.begin(), readers.end(), [&](OpId it) { return absorbed(it); });
    for (const TensorId input : op.inputs) setup.gradients.push_back(graph_.tensor(input).role == Role::activation);
    setup.native = inner_->make_bf16(id);
    return std::make_unique<Bf16Adapter>(std::move(inner), std::move(setup));
  }

  bool absorbed(OpId op) const override { return inner_->absorbed(op); }
  bool rebuilt(OpId op) const override { return inner_->rebuilt(op); }
  Saved saved(const StageGraph& stage, OpId op) const override { return inner_->saved(stage, op); }

  std::int64_t tensor_bytes(TensorId tensor) const override {
    return inner_->tensor_bytes(tensor) / (is_narrow(tensor) ? 2 : 1);
  }

  void add(TensorId tensor, void* destination, const void* source) const override {
    if (!is_narrow(tensor)) return inner_->add(tensor, destination, source);
    copies_.add(destination, source, elements(tensor));
  }

 private:
  bool is_narrow(TensorId id) const {
    const Tensor& tensor = graph_.tensor(id);
    return tensor.shape.element == ElementType::real && !is_wide(tensor);
  }

  std::int64_t elements(TensorId tensor) const { return inner_->tensor_bytes(tensor) / kFp32Bytes; }

  std::vector<Bf16Operand> operands(const std::vector<TensorId>& tensors) const {
    std::vector<Bf16Operand> narrow;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (is_narrow(tensors[i])) narrow.push_back({i, elements(tensors[i])});
    }
    return narrow;
  }

  const Graph& graph_;
  std::unique_ptr<KernelFactory> inner_;
  Bf16Copies copies_;
};

}  // namespace

std::unique_ptr<KernelFactory> make_bf16_factory(const Graph& graph, std::unique_ptr<KernelFactory> inner,
                                                 int threads) {
  return std::make_unique<Bf16Factory>(graph, std::move(inner), threads);
}

}  // namespace millrace::kernels
