// Counts the operators of a layer one by one: sizes of products, bytes that the others read and write.
#include "cost/transformer.h"

#include <algorithm>
#include <array>
#include <initializer_list>

namespace millrace::cost {
namespace {

// Adds up operators of one pass.
class Pass {
 public:
  explicit Pass(const DeviceRates& rates) : rates_(rates) {}

  // (m × k) · (k × n); `times` such products.
  Pass& product(double m, double n, double k, int times = 1) { return add(rates_.matmul.time(2 * m * n * k), times); }
  Pass& streams(std::initializer_list<double> bytes) {
    for (const double amount : bytes) add(rates_.memory.time(amount), 1);
    return *this;
  }
  // A batched product of attention, bound by its arithmetic or by its scores.
  Pass& score_product(double flops, double bytes, int times) {
    const Seconds arithmetic = rates_.matmul.time(flops) - rates_.matmul.ramp + rates_.attention.ramp;
    return add(std::max(arithmetic, rates_.attention.time(bytes)), times);
  }
  Pass& scores(double bytes) { return add(rates_.attention.time(bytes), 1); }
  Pass& fused_attention(double flops) { return add(rates_.fused_attention.time(flops), 1); }
  Pass& dispatch(int operators) {
    cost_.operators += operators;
    return *this;
  }
  Pass& reduce(double all_reduces) {
    cost_.collectives += all_reduces;
    return *this;
  }

  const PassCost& cost() const { return cost_; }

 private:
  Pass& add(Seconds each, int times) {
    cost_.compute += each * static_cast<double>(times);
    cost_.operators += times;
    return *this;
  }

  const DeviceRates& rates_;
  PassCost cost_;
};

PassCost sum(const PassCost& a, const PassCost& b) {
  return {a.compute + b.compute, a.operators + b.operators, a.collectives + b.collectives};
}

// Operators around a collective: the split tensor is made contiguous, its communicator is entered and left.
constexpr int kDispatchOfCollectives = 4;
// Random-number states that dropout under tensor parallelism saves and restores, autograd's own nodes.
constexpr int kDispatchOfBackward = 8;
constexpr int kDispatchOfUnfusedSoftmax = 5;

// The core of attention: scores, softmax, dropout, weighted values.
struct Core {
  PassCost forward, backward;
};

Core attention_core(const Transformer& model, const Slice& slice, const Software& software, const DeviceRates& rates) {
  const double tokens = static_cast<double>(slice.micro_batch * model.sequence);
  const double sequence = static_cast<double>(model.sequence);
  const double width = static_cast<double>(model.hidden) / slice.tensor;
  const double flops = 2 * tokens * sequence * width;
  Core core;
  if (software.fused_attention) {
    // Two products of half the scores each way; backward has five.
    core.forward = Pass(rates).fused_attention(flops).cost();
    core.backward = Pass(rates).fused_attention(2.5 * flops).cost();
    return core;
  }
  const double scores = static_cast<double>(model.heads) / slice.tensor * sequence * tokens;
  const double operands = 6 * tokens * width;
  Pass forward(rates), backward(rates);
  // Softmax reads and writes; dropout also writes its mask.
  forward.score_product(flops, 2 * scores + operands, 2).scores(4 * scores).scores(5 * scores);
  backward.score_product(flops, 2 * scores + operands, 4).scores(5 * scores).scores(6 * scores);
  const bool fits_fused = !software.fused_softmax_by_four || (slice.micro_batch * model.heads / slice.tensor) % 4 == 0;
  if (!fits_fused) {
    forward.dispatch(kDispatchOfUnfusedSoftmax);
    backward.dispatch(kDispatchOfUnfusedSoftmax);
  }
  core.forward = forward.cost();
  core.backward = backward.cost();
  return core;
}

}  // namespace

double Transformer::layer_parameters() const {
  const auto h = static_cast<double>(hidden);
  return 4 * h * h + 2 * h * static_cast<double>(ffn);
}

double Transformer::embedding_parameters() const {
  return static_cast<double>(vocabulary) * static_cast<double>(hidden);
}

double activation_bytes(const Transformer& model, std::int64_t micro_batch) {
  return 2.0 * static_cast<double>(micro_batch * model.sequence * model.hidden);
}

BlockCost layer_cost(const Transformer& model, const Slice& slice, Recompute recompute, const Software& software,
                     const DeviceRates& rates) {
  const double t = slice.tensor;
  const double n = static_cast<double>(slice.micro_batch * model.sequence);
  const double h = static_cast<double>(model.hidden);
  const double f = static_cast<double>(model.ffn);
  const double whole = n * h / (slice.sequence_parallel ? t : 1);  // elements of a norm, dropout or sum
  const double split = n * h / t;
  const double inner = n * f / t;
  const Core core = attention_core(model, slice, software, rates);
  const double reductions = slice.tensor > 1 ? 2 : 0;
  const int around = slice.tensor > 1 ? kDispatchOfCollectives : 0;

  Pass forward(rates);
  forward.product(n, 3 * h / t, h).product(n, h, h / t).product(n, f / t, h).product(n, h, f / t);
  const double norm = (software.persistent_norm ? 4 : 6) * whole;
  // Two norms, heads apart and together again, GELU with its bias, two sums of bias, dropout and residual.
  forward.streams({norm, norm, 12 * split, 4 * split, 4 * inner, 7 * whole, 7 * whole});
  forward.reduce(reductions * (1 - software.hidden_gathers)).dispatch(around);

  Pass input(rates);
  input.product(n, 3 * h / t, h).product(n, h, h / t).product(n, f / t, h).product(n, h, f / t);
  const double norm_back = (software.persistent_norm ? 10 : 16) * whole;
  // Norms (input gradient, then gains), dropouts, residual sums, GELU, its bias, heads.
  input.streams(
      {norm_back, norm_back, 5 * whole, 5 * whole, 6 * whole, 6 * whole, 6 * inner, 2 * inner, 12 * split, 4 * split});
  // Input gradients of products split by columns are summed. With a split sequence that is a reduce-scatter, gradients
  // of the other products are gathered, and so are inputs, for the weight gradients.
  const double before = slice.sequence_parallel ? reductions / 2 * (1 - software.hidden_gathers) : 0;
  input.reduce(reductions + before).dispatch(around + kDispatchOfBackward);

  Pass weight(rates);
  weight.product(n, 3 * h / t, h).product(n, h, h / t).product(n, f / t, h).product(n, h, f / t);
  weight.streams({software.weight_gradient_bytes * model.layer_parameters() / t});

  BlockCost cost{sum(forward.cost(), core.forward), sum(input.cost(), core.backward), weight.cost(), {}};
  if (recompute == Recompute::selective && !software.fused_attention) cost.recompute = core.forward;
  if (recompute == Recompute::full) cost.recompute = cost.forward;
  return cost;
}

BlockCost head_cost(const Transformer& model, const Slice& slice, const DeviceRates& rates) {
  const double n = static_cast<double>(slice.micro_batch * model.sequence);
  const double h = static_cast<double>(model.hidden);
  const double v = static_cast<double>(model.vocabulary) / slice.tensor;
  const double logits = n * v;
  const double reductions = slice.tensor > 1 ? 0.5 : 0;
  Pass forward(rates), input(rates), weight(rates);
  // To fp32, maximum, difference, exponential, sum, quotient: six passes over the logits.
  forward.product(n, v, h).streams({6 * logits, 4 * logits, 8 * logits, 8 * logits, 4 * logits, 8 * logits});
  forward.reduce(reductions).dispatch(8);
  input.product(n, h, v).streams({8 * logits, 6 * logits}).reduce(2 * reductions).dispatch(8);
  weight.product(v, h, n);
  return {forward.cost(), input.cost(), weight.cost(), {}};
}

BlockCost embedding_cost(const Transformer& model, const Slice& slice, const DeviceRates& rates) {
  const double n = static_cast<double>(slice.micro_batch * model.sequence);
  const double h = static_cast<double>(model.hidden);
  Pass forward(rates), weight(rates);
  forward.streams({4 * n * h, 6 * n * h, 5 * n * h}).reduce(slice.tensor > 1 ? 1 : 0);
  weight.streams({8 * static_cast<double>(model.vocabulary) / slice.tensor * h});
  return {forward.cost(), {}, weight.cost(), {}};
}

double layer_activation_bytes(const Transformer& model, const Slice& slice, Recompute recompute, bool fused_attention) {
  const double t = slice.tensor;
  const double sbh = static_cast<double>(slice.micro_batch * model.sequence * model.hidden);
  if (recompute == Recompute::full) return 2 * sbh;
  const double scores = 5.0 * static_cast<double>(model.heads * model.sequence) / static_cast<double>(model.hidden);
  const double kept_scores = recompute == Recompute::none && !fused_attention ? scores : 0;
  const double whole = slice.sequence_parallel ? 10 / t : 10;
  return sbh * (whole + 24 / t + kept_scores / t);
}

}  // namespace millrace::cost
