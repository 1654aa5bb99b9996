// Reorders an operator's tensors into scratch before its kernel runs, and what it wrote back afterwards.
#include "kernels/onednn/layout_adapter.h"

#include <algorithm>
#include <vector>

#include "kernels/onednn/site.h"

namespace millrace::kernels::onednn {
namespace {

/// An operand that lies in another layout than the kernel computes in.
struct Operand {
  std::size_t position = 0;
  std::int64_t bytes = 0;  // in the kernel's layout
  Reorder read, write;     // to and from the kernel's layout
};

class LayoutAdapter : public OpKernel {
 public:
  LayoutAdapter(std::unique_ptr<OpKernel> inner, const Operator& op, const Layouts& layouts, int block,
                const Engine& engine)
      : inner_(std::move(inner)),
        inputs_(operands(op.inputs, layouts, block, engine)),
        outputs_(operands(op.outputs, layouts, block, engine)),
        input_places_(op.inputs.size()),
        output_places_(op.outputs.size()),
        input_gradient_places_(op.inputs.size()),
        output_gradient_places_(op.outputs.size()) {
    std::int64_t own = 0;
    for (const auto* list : {&inputs_, &outputs_}) {
      for (const Operand& operand : *list) {
        own += 2 * aligned(operand.bytes);
        reorder_scratch_ = std::max({reorder_scratch_, operand.read.scratch, operand.write.scratch});
      }
    }
    reorder_scratch_ = aligned(reorder_scratch_);
    own_scratch_ = reorder_scratch_ + own;
  }

  void forward(const OpCall& call) override {
    run(call, true, [this](const OpCall& inner) { inner_->forward(inner); });
  }
  void backward_input(const OpCall& call) override {
    run(call, false, [this](const OpCall& inner) { inner_->backward_input(inner); });
  }
  void backward_weight(const OpCall& call) override {
    run(call, false, [this](const OpCall& inner) { inner_->backward_weight(inner); });
  }

  bool can_overwrite() const override { return inner_->can_overwrite(); }
  std::int64_t extra_bytes() const override { return inner_->extra_bytes(); }
  std::int64_t scratch_bytes() const override { return own_scratch_ + inner_->scratch_bytes(); }

 private:
  static std::vector<Operand> operands(const std::vector<TensorId>& tensors, const Layouts& layouts, int block,
                                       const Engine& engine) {
    std::vector<Operand> result;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (!layouts.differs(tensors[i], block)) continue;
      const MemoryDesc here = layouts.desc(tensors[i]);
      const MemoryDesc there = layouts.desc(tensors[i], block);
      result.push_back({i, static_cast<std::int64_t>(there.get_size()), make_reorder(engine, here, there),
                        make_reorder(engine, there, here)});
    }
    return result;
  }

  static void copy(Reorder& reorder, const void* from, void* to, void* scratch) {
    reorder.primitive.bind(0, from);
    reorder.primitive.bind(1, to);
    reorder.primitive.bind(2, scratch);
    reorder.primitive.execute();
  }

  // Replaces each operand in `places` by a copy in scratch; `written` ones go back after the call.
  template <class Span, class Places>
  std::byte* place(Span span, Places& places, std::vector<Operand>& operands, std::byte* next, bool read,
                   void* scratch) {
    std::copy(span.begin(), span.end(), places.begin());
    for (Operand& operand : operands) {
      if (operand.position >= span.size() || !span[operand.position]) continue;
      if (read) copy(operand.read, span[operand.position], next, scratch);
      places[operand.position] = next;
      next += aligned(operand.bytes);
    }
    return next;
  }

  template <class Span, class Places>
  void put_back(Span span, const Places& places, std::vector<Operand>& operands, void* scratch) {
    for (Operand& operand : operands) {
      if (operand.position >= span.size() || !span[operand.position]) continue;
      copy(operand.write, places[operand.position], span[operand.position], scratch);
    }
  }

  template <class Run>
  void run(const OpCall& call, bool forward, Run&& run) {
    void* const reorder = call.scratch;
    std::byte* next = static_cast<std::byte*>(call.scratch) + reorder_scratch_;
    OpCall inner = call;
    next = place(call.inputs, input_places_, inputs_, next, true, reorder);
    next = place(call.outputs, output_places_, outputs_, next, !forward, reorder);
    inner.inputs = std::span<const void* const>(input_places_).first(call.inputs.size());
    inner.outputs = std::span<void* const>(output_places_).first(call.outputs.size());
    if (!forward) {
      next = place(call.output_gradients, output_gradient_places_, outputs_, next, true, reorder);
      next = place(call.input_gradients, input_gradient_places_, inputs_, next, false, reorder);
      inner.output_gradients =
          std::span<const void* const>(output_gradient_places_).first(call.output_gradients.size());
      inner.input_gradients = std::span<void* const>(input_gradient_places_).first(call.input_gradients.size());
    }
    inner.scratch = static_cast<std::byte*>(call.scratch) + own_scratch_;
    run(inner);
    if (forward) {
      put_back(call.outputs, output_places_, outputs_, reorder);
    } else {
      put_back(call.input_gradients, input_gradient_places_, inputs_, reorder);
    }
  }

  std::unique_ptr<OpKernel> inner_;
  std::vector<Operand> inputs_, outputs_;
  std::vector<const void*> input_places_;
  std::vector<void*> output_places_, input_gradient_places_;
  std::vector<const void*> output_gradient_places_;
  std::int64_t reorder_scratch_ = 0;
  std::int64_t own_scratch_ = 0;
};

}  // namespace

std::unique_ptr<OpKernel> adapt_layouts(std::unique_ptr<OpKernel> inner, const Operator& op, const Layouts& layouts,
                                        int block, const Engine& engine) {
  const auto differs = [&](TensorId tensor) { return layouts.differs(tensor, block); };
  if (std::none_of(op.inputs.begin(), op.inputs.end(), differs) &&
      std::none_of(op.outputs.begin(), op.outputs.end(), differs)) {
    return inner;
  }
  return std::make_unique<LayoutAdapter>(std::move(inner), op, layouts, block, engine);
}

}  // namespace millrace::kernels::onednn
