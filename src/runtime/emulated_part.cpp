// One executable for each operator, whose times pass one after the other, and the group's collectives between them.
#include "runtime/emulated_part.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kernels/gradient_flow.h"
#include "program/part_collectives.h"

namespace millrace::runtime {
namespace {

struct Modelled {
  comm::Collective kind = comm::Collective::all_reduce;
  std::int64_t bytes = 0;
};

/// One operator of the part: a kernel, with a reduction inside or not, or an exchange.
struct Action {
  std::unique_ptr<kernels::Executable> kernel;  // null: an exchange
  OpId whole = -1;
  bool has_weights = false;
  std::optional<Modelled> forward, backward;
  std::vector<std::size_t> begin_behind{};  // exchanges whose gradient is complete behind its backward
};

comm::Collective kind_of(InstructionKind kind) {
  switch (kind) {
    case InstructionKind::all_gather:
      return comm::Collective::all_gather;
    case InstructionKind::reduce_scatter:
      return comm::Collective::reduce_scatter;
    case InstructionKind::all_to_all:
      return comm::Collective::all_to_all;
    default:
      return comm::Collective::all_reduce;
  }
}

std::optional<Modelled> modelled(const Holding& from, const Holding& to, std::int64_t bytes) {
  const std::optional<InstructionKind> kind = collective_of(from, to);
  return kind ? std::optional(Modelled{kind_of(*kind), bytes}) : std::nullopt;
}

class EmulatedPart final : public kernels::Executable {
 public:
  EmulatedPart(const StageParts& parts, const StageGraph& stage, PartGroup& group, kernels::Device& device,
               kernels::StageParameters& parameters, const kernels::CompileOptions& options)
      : group_(group), rows_(options.rows), again_(parts.recomputed(options.recompute)) {
    const StageGraph& part = parts.devices[static_cast<std::size_t>(group.index())].stage;
    kernels::CompileOptions sizes = options;
    sizes.recompute = again_;
    bytes_ = device.compile(part, parameters, sizes)->bytes();
    kernels::CompileOptions one = options;
    one.recompute.clear();
    for (const OpId op : parts.whole_op) {
      Action& action = actions_.emplace_back();
      action.whole = op;
    }
    for (const PartExchange& exchange : parts.exchanges) add_exchange(exchange);
    auto exchange = parts.exchanges.begin();
    for (std::size_t i = 0; i < actions_.size(); ++i) {
      if (exchange != parts.exchanges.end() && static_cast<std::size_t>(exchange->op) == i) {
        ++exchange;
        continue;
      }
      Action& action = actions_[i];
      action.kernel = device.compile(make_stage_graph(*stage.graph, std::span(&action.whole, 1)), parameters, one);
      action.has_weights = !stage.graph->op(action.whole).parameters.empty();
    }
    for (const SplitOperator& split : parts.split) {
      if (split.kind != SplitOperator::Kind::classes) continue;
      actions_[static_cast<std::size_t>(split.op)].forward =
          Modelled{comm::Collective::all_reduce, rows_ * class_bytes(split, parts.size())};
    }
    find_early(part);
  }

  std::int64_t rows() const override { return rows_; }
  kernels::ExecutableBytes bytes() const override { return bytes_; }
  void* input(int, TensorId) override { return nullptr; }
  const void* output(int, TensorId) override { return nullptr; }
  void* output_gradient(int, TensorId) override { return nullptr; }
  const void* input_gradient(int, TensorId) override { return nullptr; }

  void forward(int slot, const kernels::BatchContext& context) override {
    for (const Action& action : actions_) forward_of(action, slot, context);
  }

  void backward(int slot) override {
    for (std::size_t i = actions_.size(); i-- > 0;) {
      const Action& action = actions_[i];
      if (action.kernel != nullptr) action.kernel->backward_input(slot);
      if (action.kernel == nullptr) end_gradient(i);
      for (const std::size_t exchange : action.begin_behind) begin_gradient(exchange);
      if (action.has_weights) action.kernel->backward_weight(slot);
      if (observer_ != nullptr) observer_->done(action.whole);
    }
  }

  void backward_input(int slot) override {
    for (std::size_t i = actions_.size(); i-- > 0;) {
      if (actions_[i].kernel == nullptr) {
        end_gradient(i);
      } else {
        actions_[i].kernel->backward_input(slot);
      }
    }
  }

  void backward_weight(int slot) override {
    for (std::size_t i = actions_.size(); i-- > 0;) weight_gradients(actions_[i], slot);
  }

  void backward_weight_of(int slot, std::span<const OpId> ops) override {
    for (std::size_t i = actions_.size(); i-- > 0;) {
      if (std::binary_search(ops.begin(), ops.end(), actions_[i].whole)) weight_gradients(actions_[i], slot);
    }
  }

  void recompute(int slot) override {
    for (const OpId op : again_) forward_of(actions_[static_cast<std::size_t>(op)], slot, {});
  }

  void observe(kernels::BackwardObserver* observer) override { observer_ = observer; }

 private:
  void weight_gradients(const Action& action, int slot) {
    if (action.kernel == nullptr) return;
    if (action.has_weights) action.kernel->backward_weight(slot);
    if (observer_ != nullptr) observer_->done(action.whole);
  }

  void add_exchange(const PartExchange& exchange) {
    Action& action = actions_[static_cast<std::size_t>(exchange.op)];
    const std::int64_t bytes = rows_ * element_count(exchange.dims) * exchange.element_bytes;
    action.forward = modelled(exchange.from, exchange.to, bytes);
    if (exchange.has_gradient) action.backward = modelled(exchange.gradient_from, exchange.gradient_to, bytes);
    under_way_.try_emplace(static_cast<std::size_t>(exchange.op));
  }

  void find_early(const StageGraph& part) {
    const auto completed = kernels::completed_behind(part, kernels::gradient_flow(part));
    for (std::size_t i = 0; i < actions_.size(); ++i) {
      std::copy_if(completed[i].begin(), completed[i].end(), std::back_inserter(actions_[i].begin_behind),
                   [&](std::size_t k) { return actions_[k].backward.has_value(); });
    }
  }

  void forward_of(const Action& action, int slot, const kernels::BatchContext& context) {
    if (action.kernel != nullptr) action.kernel->forward(slot, context);
    if (!action.forward) return;
    PartGroup::Tickets tickets;
    group_.model(action.forward->kind, action.forward->bytes, tickets);
    group_.wait(tickets);
  }

  void begin_gradient(std::size_t exchange) {
    const Modelled& collective = *actions_[exchange].backward;
    group_.model(collective.kind, collective.bytes, under_way_.at(exchange));
  }

  // One that has not begun behind its last reader begins here.
  void end_gradient(std::size_t exchange) {
    if (!actions_[exchange].backward) return;
    PartGroup::Tickets& tickets = under_way_.at(exchange);
    if (tickets.empty()) begin_gradient(exchange);
    group_.wait(tickets);
  }

  PartGroup& group_;
  std::int64_t rows_;
  std::vector<OpId> again_;  // of the part
  kernels::ExecutableBytes bytes_;
  std::vector<Action> actions_;                          // by operator of the part
  std::map<std::size_t, PartGroup::Tickets> under_way_;  // by operator
  kernels::BackwardObserver* observer_ = nullptr;
};

}  // namespace

std::unique_ptr<kernels::Executable> compile_emulated_part(const StageParts& parts, const StageGraph& stage,
                                                           PartGroup& group, kernels::Device& device,
                                                           kernels::StageParameters& parameters,
                                                           const kernels::CompileOptions& options) {
  return std::make_unique<EmulatedPart>(parts, stage, group, device, parameters, options);
}

}  // namespace millrace::runtime
