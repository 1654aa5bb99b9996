// Binds the kernels of a stage to their planned memory once, and calls them in order.
#include "kernels/stage_executable.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "kernels/arena.h"
#include "kernels/gradient_flow.h"
#include "kernels/recompute_plan.h"
#include "kernels/tensor_plan.h"

namespace millrace::kernels {
namespace {

/// The pointers of one operator on one slot, set once; calls point into these lists.
struct Operands {
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  std::vector<const void*> again_inputs;  // in its second forward
  std::vector<void*> again_outputs;
  std::vector<const void*> saved_inputs;  // in backward
  std::vector<void*> saved_outputs;
  std::vector<const void*> output_gradients;
  std::vector<void*> input_gradients, parameter_gradients, buffer_gradients;
  std::vector<std::size_t> accumulators;  // that the parameter gradients are, each once
  std::byte* factors = nullptr;           // of the first row of the batch, where they are kept instead of a gradient
  std::int64_t factors_bytes = 0;         // of one row
  void* extra = nullptr;
  void* again_extra = nullptr;  // where backward finds it: as `extra` where it is not dropped
  void* forward_scratch = nullptr;
  void* again_scratch = nullptr;
  void* backward_scratch = nullptr;
};

/// The values that one operator reads, of one version of the parameters.
struct Weights {
  std::vector<const void*> parameters, buffers;
};

/// Sums that follow an operator's backward_input.
struct Addition {
  TensorId tensor;
  void* sum;
  const void* term;
};

/// One micro-batch in flight.
struct Slot {
  std::int64_t first_row = 0;
  std::int64_t valid_rows = 0;
  double row_weight = 0;
  std::int64_t step = 0;
  std::int64_t* samples = nullptr;
  std::vector<Operands> ops;                     // by position in StageGraph::ops
  std::vector<std::vector<Addition>> additions;  // by position
};

/// What kernels keep beside tensors and a second forward brings back. Where the backward is split it is not dropped:
/// it also carries what the first half finds out for the second.
std::vector<bool> droppable_extras(std::span<const std::unique_ptr<OpKernel>> kernels, bool split_backward) {
  std::vector<bool> drops;
  for (const auto& kernel : kernels) drops.push_back(kernel->extra_bytes() > 0 && !split_backward);
  return drops;
}

constexpr int kNoSlot = -1;

class StageExecutable : public Executable {
 public:
  StageExecutable(const StageGraph& stage, StageParameters& parameters, const CompileOptions& options,
                  std::unique_ptr<KernelFactory> factory)
      : stage_(stage),
        parameters_(parameters),
        options_(options),
        factory_(std::move(factory)),
        kernels_(make_kernels()),
        flow_(flow_without_fused()),
        again_(plan_again()),
        plan_(plan_tensors(stage_, flow_, again_, options_, *factory_, kernels_)),
        block_(options_.slots * plan_.slot_bytes + plan_.workspace_bytes) {
    slots_.resize(static_cast<std::size_t>(options_.slots));
    find_early();
    bind_weights();
    for (int slot = 0; slot < options_.slots; ++slot) bind(slot, parameters);
  }

  std::int64_t rows() const override { return options_.rows; }

  ExecutableBytes bytes() const override { return {plan_.slot_bytes, plan_.workspace_bytes, options_.slots}; }

  void* input(int slot, TensorId tensor) override { return border(stage_.inputs, plan_.values, slot, tensor, "input"); }
  const void* output(int slot, TensorId tensor) override {
    return border(stage_.outputs, plan_.values, slot, tensor, "output");
  }
  void* output_gradient(int slot, TensorId tensor) override {
    return border(stage_.outputs, plan_.gradients, slot, tensor, "output gradient");
  }
  const void* input_gradient(int slot, TensorId tensor) override {
    return border(stage_.gradient_inputs, plan_.gradients, slot, tensor, "input gradient");
  }

  void forward(int slot, const BatchContext& context) override {
    Slot& state = slots_[static_cast<std::size_t>(slot)];
    state.first_row = context.first_row;
    state.valid_rows = context.valid_rows;
    state.row_weight = context.row_weight;
    state.step = context.step;
    const auto given = std::min(context.samples.size(), static_cast<std::size_t>(options_.rows));
    std::copy_n(context.samples.begin(), given, state.samples);
    std::fill(state.samples + given, state.samples + options_.rows, -1);  // padding rows without an id

    back_in_ = kNoSlot;
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      const Operands& op = state.ops[i];
      OpCall call = begin_call(state, i);
      call.inputs = op.inputs;
      call.outputs = op.outputs;
      call.extra = op.extra;
      call.scratch = op.forward_scratch;
      kernels_[i]->forward(call);
      ran(i, Pass::forward);
    }
  }

  void backward(int slot) override {
    begin_backward(slot);
    for (std::size_t i = kernels_.size(); i-- > 0;) {
      run_again(again_.before[i], slot);
      backward_input_of(i, slot);
      begin_behind(i, slot);
      weight_gradients(i, slot);
      tell(i);
    }
  }

  void backward_input(int slot) override {
    begin_backward(slot);
    for (std::size_t i = kernels_.size(); i-- > 0;) {
      run_again(again_.before[i], slot);
      backward_input_of(i, slot);
    }
  }

  // Only one segment exists at once, so the weights' half brings each back again.
  void backward_weight(int slot) override {
    begin_backward(slot);
    for (std::size_t i = kernels_.size(); i-- > 0;) {
      run_again(again_.before[i], slot);
      weight_gradients(i, slot);
      tell(i);
    }
  }

  void backward_weight_of(int slot, std::span<const OpId> ops) override {
    if (ops.empty()) return;
    begin_backward(slot);
    const auto first = std::lower_bound(stage_.ops.begin(), stage_.ops.end(), ops.front()) - stage_.ops.begin();
    for (std::size_t i = static_cast<std::size_t>(first) + ops.size(); i-- > static_cast<std::size_t>(first);) {
      weight_gradients(i, slot);
      tell(i);
    }
  }

  void recompute(int slot) override {
    run_again(again_.first, slot);
    back_in_ = slot;
  }

  void observe(BackwardObserver* observer) override { observer_ = observer; }
  void observe_kernels(KernelObserver* observer) override { kernel_observer_ = observer; }

 private:
  std::vector<std::unique_ptr<OpKernel>> make_kernels() const {
    std::vector<std::unique_ptr<OpKernel>> kernels;
    for (const OpId op : stage_.ops) {
      auto own = options_.source != nullptr ? options_.source->make(op, options_, *factory_) : nullptr;
      kernels.push_back(own ? std::move(own) : factory_->make(op));
    }
    return kernels;
  }

  /// No gradient passes through a loss that the layer before it does, nor between the two.
  GradientFlow flow_without_fused() const {
    GradientFlow flow = gradient_flow(stage_);
    for (const OpId op : stage_.ops) {
      if (factory_->fused_loss(op) == nullptr) continue;
      const std::size_t loss = position_of(stage_.graph->loss());
      flow.active[loss] = false;
      flow.wanted[loss].assign(flow.wanted[loss].size(), false);
    }
    return flow;
  }

  std::size_t position_of(OpId op) const {
    return static_cast<std::size_t>(std::lower_bound(stage_.ops.begin(), stage_.ops.end(), op) - stage_.ops.begin());
  }

  /// What was asked for, and what the device makes again by itself.
  RecomputePlan plan_again() const {
    RecomputePlan again =
        plan_recompute(stage_, flow_, options_.training ? std::span(options_.recompute) : std::span<OpId>(),
                       droppable_extras(kernels_, options_.split_backward));
    for (std::size_t i = 0; i < stage_.ops.size(); ++i) {
      if (!factory_->rebuilt(stage_.ops[i])) continue;
      TensorId tensor = stage_.graph->op(stage_.ops[i]).outputs[0];
      std::size_t reader = i;
      do {
        again.dropped.insert(tensor);
        const OpId next = stage_.graph->consumers(tensor).front();
        tensor = stage_.graph->op(next).outputs[0];
        reader = position_of(next);
      } while (factory_->absorbed(stage_.ops[reader]));
      again.before[reader].push_back(i);
    }
    return again;
  }

  void* at(int slot, Place place) const {
    if (place.region == Place::Region::none) return nullptr;
    const bool in_slot = place.region == Place::Region::slot;
    return block_.at((in_slot ? slot : options_.slots) * plan_.slot_bytes + place.offset);
  }

  /// Null where the plan gives the tensor no place: a gradient that nobody computes.
  void* find(int slot, const std::unordered_map<TensorId, Place>& places, TensorId tensor) const {
    const auto found = places.find(tensor);
    return found == places.end() ? nullptr : at(slot, found->second);
  }

  /// Where a tensor is after what was dropped is back.
  void* find_again(int slot, TensorId tensor) const {
    return find(slot, plan_.recomputed.contains(tensor) ? plan_.recomputed : plan_.values, tensor);
  }

  /// One list a version: the newest values first, then the copies.
  void bind_weights() {
    for (int copy = StageParameters::kNewest; copy < parameters_.copies(); ++copy) {
      std::vector<Weights>& of_ops = weights_.emplace_back();
      for (const OpId id : stage_.ops) {
        const Operator& op = stage_.graph->op(id);
        Weights& weights = of_ops.emplace_back();
        for (const TensorId tensor : op.parameters) weights.parameters.push_back(parameters_.value(tensor, copy));
        for (const TensorId tensor : op.buffers) weights.buffers.push_back(parameters_.value(tensor, copy));
      }
    }
  }

  void* border(const std::vector<TensorId>& list, const std::unordered_map<TensorId, Place>& places, int slot,
               TensorId tensor, const char* what) const {
    void* memory = std::binary_search(list.begin(), list.end(), tensor) ? find(slot, places, tensor) : nullptr;
    if (!memory || slot < 0 || slot >= options_.slots) {
      throw std::logic_error(fmt::format("slot {} of the stage has no {} for tensor {}", slot, what, tensor));
    }
    return memory;
  }

  void bind(int slot, StageParameters& parameters) {
    Slot& state = slots_[static_cast<std::size_t>(slot)];
    state.samples = static_cast<std::int64_t*>(at(slot, plan_.samples));
    state.additions.resize(stage_.ops.size());
    for (std::size_t i = 0; i < stage_.ops.size(); ++i) {
      const Operator& op = stage_.graph->op(stage_.ops[i]);
      const OpPlaces& places = plan_.ops[i];
      Operands operands;
      for (const KernelInput& in : places.inputs) operands.inputs.push_back(find(slot, plan_.values, in.tensor));
      for (const TensorId tensor : op.outputs) operands.outputs.push_back(find(slot, plan_.values, tensor));
      for (const TensorId tensor : op.inputs) operands.again_inputs.push_back(find_again(slot, tensor));
      for (const TensorId tensor : op.outputs) operands.again_outputs.push_back(find_again(slot, tensor));
      operands.extra = at(slot, places.extra);
      const bool moves = places.recomputed_extra.region != Place::Region::none;
      operands.again_extra = moves ? at(slot, places.recomputed_extra) : operands.extra;
      operands.again_scratch = at(slot, places.recompute_scratch);
      operands.forward_scratch = at(slot, places.forward_scratch);
      if (options_.training) {
        operands.backward_scratch = at(slot, places.backward_scratch);
        bind_gradients(slot, i, parameters, operands);
      }
      if (const Operator* loss = factory_->fused_loss(stage_.ops[i])) join_loss(slot, *loss, operands);
      state.ops.push_back(std::move(operands));
    }
  }

  /// The kernel of a layer that does the loss, too, reads and writes what that one does beside the tensor between them.
  void join_loss(int slot, const Operator& loss, Operands& operands) const {
    for (std::size_t k = 1; k < loss.inputs.size(); ++k) {
      operands.inputs.push_back(find(slot, plan_.values, loss.inputs[k]));
      if (options_.training) operands.saved_inputs.push_back(operands.inputs.back());
    }
    operands.outputs.clear();
    operands.output_gradients.clear();
    for (const TensorId tensor : loss.outputs) {
      operands.outputs.push_back(find(slot, plan_.values, tensor));
      operands.output_gradients.push_back(find(slot, plan_.gradients, tensor));
    }
  }

  void bind_gradients(int slot, std::size_t i, StageParameters& parameters, Operands& operands) {
    const OpId id = stage_.ops[i];
    const Operator& op = stage_.graph->op(id);
    for (const TensorId tensor : op.buffers) operands.buffer_gradients.push_back(parameters.gradient(tensor, id));
    if (!flow_.active[i]) return;

    const Saved saved = factory_->saved(stage_, id);
    operands.saved_inputs.resize(op.inputs.size());
    operands.saved_outputs.resize(op.outputs.size());
    for (const int k : saved.inputs) {
      operands.saved_inputs[static_cast<std::size_t>(k)] = operands.again_inputs[static_cast<std::size_t>(k)];
    }
    for (const int k : saved.outputs) {
      operands.saved_outputs[static_cast<std::size_t>(k)] = operands.again_outputs[static_cast<std::size_t>(k)];
    }
    const TensorId last = join_absorbed(i, operands);
    for (const TensorId tensor : op.parameters) {
      operands.parameter_gradients.push_back(parameters.gradient(tensor, id));
      const std::size_t accumulator = parameters.accumulator(tensor, id);
      std::vector<std::size_t>& own = operands.accumulators;
      if (std::find(own.begin(), own.end(), accumulator) == own.end()) own.push_back(accumulator);
    }
    if (!op.parameters.empty()) bind_factors(op, parameters, operands);
    for (const TensorId tensor : op.outputs) {
      operands.output_gradients.push_back(find(slot, plan_.gradients, tensor));
    }
    if (kernels_[i]->adds_gradient()) operands.output_gradients.push_back(find(slot, plan_.terms, last));
    for (const KernelInput& input : plan_.ops[i].inputs) {
      void* const place = at_gradient(slot, input);
      operands.input_gradients.push_back(place);
      if (input.gradient != KernelInput::Gradient::added) continue;
      slots_[static_cast<std::size_t>(slot)].additions[i].push_back(
          {input.tensor, find(slot, plan_.gradients, input.tensor), place});
    }
  }

  void* at_gradient(int slot, const KernelInput& input) const {
    switch (input.gradient) {
      case KernelInput::Gradient::none:
        return nullptr;
      case KernelInput::Gradient::sum:
        return find(slot, plan_.gradients, input.tensor);
      case KernelInput::Gradient::added:
        return at(slot, input.added);
      case KernelInput::Gradient::term:
        return find(slot, plan_.terms, input.tensor);
    }
    return nullptr;
  }

  /// What absorbed operators keep of their outputs, which lie in the buffer of the operator that does their work.
  /// Returns the last output.
  TensorId join_absorbed(std::size_t i, Operands& operands) const {
    TensorId tensor = stage_.graph->op(stage_.ops[i]).outputs[0];
    while (true) {
      const auto readers = stage_.graph->consumers(tensor);
      if (readers.size() != 1 || !std::binary_search(stage_.ops.begin(), stage_.ops.end(), readers.front())) break;
      const OpId reader = readers.front();
      const Operator& next = stage_.graph->op(reader);
      if (!factory_->absorbed(reader) || next.inputs[factory_->joint(reader)] != tensor) break;
      if (!factory_->saved(stage_, reader).outputs.empty()) operands.saved_outputs[0] = operands.again_outputs[0];
      tensor = next.outputs[0];
    }
    return tensor;
  }

  void bind_factors(const Operator& op, const StageParameters& parameters, Operands& operands) const {
    const FactoredShape& shape = parameters.factors_of(op.parameters[0]);
    if (shape.rows == 0) return;
    const std::int64_t vectors = stage_.graph->tensor(op.outputs[0]).shape.elements_per_sample() / shape.outputs;
    operands.factors = static_cast<std::byte*>(operands.parameter_gradients[0]);
    operands.factors_bytes = vectors * shape.width() * real_bytes(parameters.precision());
  }

  OpCall begin_call(const Slot& state, std::size_t i) const {
    const Weights& weights = weights_[static_cast<std::size_t>(parameters_.reading() - StageParameters::kNewest)][i];
    OpCall call;
    call.rows = options_.rows;
    call.valid_rows = state.valid_rows;
    call.row_weight = state.row_weight;
    call.step = state.step;
    call.samples = {state.samples, static_cast<std::size_t>(options_.rows)};
    call.parameters = weights.parameters;
    call.buffers = weights.buffers;
    call.buffer_gradients = state.ops[i].buffer_gradients;
    return call;
  }

  OpCall begin_backward_call(const Slot& state, std::size_t i) const {
    const Operands& op = state.ops[i];
    OpCall call = begin_call(state, i);
    call.inputs = op.saved_inputs;
    call.outputs = op.saved_outputs;
    call.output_gradients = op.output_gradients;
    call.input_gradients = op.input_gradients;
    call.parameter_gradients = op.parameter_gradients;
    if (op.factors != nullptr) call.factors = op.factors + state.first_row * op.factors_bytes;
    call.extra = op.again_extra;
    call.scratch = op.backward_scratch;
    return call;
  }

  /// The first segment runs again, unless recompute() has done so and nothing has used the workspace since.
  void begin_backward(int slot) {
    if (back_in_ != slot) run_again(again_.first, slot);
    back_in_ = kNoSlot;
  }

  void run_again(const std::vector<std::size_t>& positions, int slot) const {
    const Slot& state = slots_[static_cast<std::size_t>(slot)];
    for (const std::size_t position : positions) {
      const Operands& op = state.ops[position];
      OpCall call = begin_call(state, position);
      call.row_weight = 0;  // the statistics of this micro-batch are deposited already
      call.inputs = op.again_inputs;
      call.outputs = op.again_outputs;
      call.extra = op.again_extra;
      call.again = op.again_extra == op.extra;
      call.scratch = op.again_scratch;
      kernels_[position]->forward(call);
    }
  }

  void tell(std::size_t i) const {
    if (observer_ != nullptr) observer_->done(stage_.ops[i]);
  }

  void ran(std::size_t i, Pass pass) const {
    if (kernel_observer_ != nullptr) kernel_observer_->ran(stage_.ops[i], pass);
  }

  void backward_input_of(std::size_t i, int slot) {
    if (!flow_.active[i]) return;
    const Slot& state = slots_[static_cast<std::size_t>(slot)];
    OpCall call = begin_backward_call(state, i);
    if (factory_->fused_loss(stage_.ops[i]) != nullptr) call.overwrite = begin_contribution(state, i);
    kernels_[i]->backward_input(call);
    for (const Addition& addition : state.additions[i]) factory_->add(addition.tensor, addition.sum, addition.term);
    ran(i, Pass::backward_input);
  }

  /// What waits for other ranks begins once its last gradient is there: weight gradients are computed meanwhile.
  void find_early() {
    early_ = completed_behind(stage_, flow_);
    for (std::vector<std::size_t>& behind : early_) {
      std::erase_if(behind, [&](std::size_t k) { return !kernels_[k]->waits_for_others(); });
    }
  }

  void begin_behind(std::size_t i, int slot) {
    for (const std::size_t k : early_[i]) {
      kernels_[k]->begin_backward_input(begin_backward_call(slots_[static_cast<std::size_t>(slot)], k));
    }
  }

  /// Whether the kernel overwrites the parameter gradients: all are empty, and none is that of two parameters. Else it
  /// adds to what is there, or to zeros. Factors of rows that are on other ranks are zeros, too.
  bool begin_contribution(const Slot& state, std::size_t i) {
    const Operands& op = state.ops[i];
    const bool overwrite =
        kernels_[i]->can_overwrite() && op.accumulators.size() == op.parameter_gradients.size() &&
        std::all_of(op.accumulators.begin(), op.accumulators.end(), [&](auto it) { return parameters_.is_empty(it); });
    for (const std::size_t accumulator : op.accumulators) {
      const bool factors = op.factors != nullptr && accumulator == op.accumulators.front();
      if (overwrite && !factors) {
        parameters_.overwritten(accumulator);
      } else {
        parameters_.prepare(accumulator);
      }
    }
    return overwrite;
  }

  void weight_gradients(std::size_t i, int slot) {
    if (!flow_.active[i] || weights_.front()[i].parameters.empty()) return;
    const Slot& state = slots_[static_cast<std::size_t>(slot)];
    OpCall call = begin_backward_call(state, i);
    call.overwrite = begin_contribution(state, i);
    kernels_[i]->backward_weight(call);
    ran(i, Pass::backward_weight);
  }

  StageGraph stage_;
  StageParameters& parameters_;
  CompileOptions options_;
  std::unique_ptr<KernelFactory> factory_;
  std::vector<std::unique_ptr<OpKernel>> kernels_;
  GradientFlow flow_;
  RecomputePlan again_;
  TensorPlan plan_;
  Block block_;
  std::vector<Slot> slots_;
  std::vector<std::vector<Weights>> weights_;    // by version and position
  std::vector<std::vector<std::size_t>> early_;  // by position: what begins behind its backward_input
  int back_in_ = kNoSlot;                        // the slot whose first segment is back
  BackwardObserver* observer_ = nullptr;
  KernelObserver* kernel_observer_ = nullptr;
};

}  // namespace

std::unique_ptr<Executable> make_stage_executable(const StageGraph& stage, StageParameters& parameters,
                                                  const CompileOptions& options,
                                                  std::unique_ptr<KernelFactory> factory) {
  return std::make_unique<StageExecutable>(stage, parameters, options, std::move(factory));
}

}  // namespace millrace::kernels
