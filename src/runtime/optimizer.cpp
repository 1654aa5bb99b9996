// Optimizer steps, one pass over each tensor.
#include "runtime/optimizer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/update_loops.h"

namespace millrace::runtime {
namespace {

template <class Real>
void sgd(Real* weight, const Real* gradient, Real* velocity, std::int64_t n, const OptimizerOptions& o,
         const UpdateScalars& s) {
  const SgdStep<Real> step{static_cast<Real>(s.learning_rate), static_cast<Real>(s.gradient_scale),
                           static_cast<Real>(o.weight_decay), static_cast<Real>(o.momentum), o.nesterov};
  if (velocity == nullptr) {
    plain_sgd_loop(weight, gradient, n, step);
  } else {
    sgd_loop(weight, gradient, velocity, n, step);
  }
}

template <class Real>
void adam(Real* weight, const Real* gradient, Real* first, Real* second, std::int64_t n, const OptimizerOptions& o,
          const UpdateScalars& s) {
  const double count = static_cast<double>(s.step);
  const bool decoupled = o.kind == OptimizerKind::adamw;
  AdamStep<Real> step;
  step.rate = static_cast<Real>(s.learning_rate / (1.0 - std::pow(o.beta1, count)));
  step.scale = static_cast<Real>(s.gradient_scale);
  step.decay = static_cast<Real>(decoupled ? 0.0 : o.weight_decay);
  step.shrink = static_cast<Real>(decoupled ? 1.0 - s.learning_rate * o.weight_decay : 1.0);
  step.beta1 = static_cast<Real>(o.beta1);
  step.beta2 = static_cast<Real>(o.beta2);
  step.epsilon = static_cast<Real>(o.epsilon);
  step.root_correction = static_cast<Real>(1.0 / std::sqrt(1.0 - std::pow(o.beta2, count)));
  adam_loop(weight, gradient, first, second, n, step);
}

// The momentum of the running statistic `buffer`: an attribute of the operator that keeps it.
double momentum_of(const Graph& graph, TensorId buffer) {
  return graph.op(graph.consumers(buffer).front()).attributes.real("momentum");
}

int state_count(const OptimizerOptions& options) {
  if (options.kind != OptimizerKind::sgd) return 2;
  return options.momentum != 0 ? 1 : 0;
}

}  // namespace

Optimizer::Optimizer(const Graph& graph, kernels::StageParameters& parameters, const OptimizerOptions& options)
    : parameters_(parameters), options_(options), states_(state_count(options)) {
  for (const TensorId tensor : parameters.order()) {
    const bool buffer = graph.tensor(tensor).role == Role::buffer;
    buffer_momentum_.push_back(buffer ? momentum_of(graph, tensor) : -1.0);
  }
  elements_ = parameters.range_elements(0, parameters.order().size());
  if (parameters.storage() == kernels::Storage::none) return;
  state_ = std::make_unique<std::byte[]>(static_cast<std::size_t>(state_bytes()));
}

std::int64_t Optimizer::state_bytes() const {
  return states_ * elements_ * kernels::real_bytes(parameters_.precision());
}

std::vector<std::string> Optimizer::state_names() const {
  if (states_ == 0) return {};
  if (states_ == 1) return {"momentum"};
  return {"first_moment", "second_moment"};
}

void* Optimizer::state(std::size_t k, TensorId tensor) {
  const auto order = parameters_.order();
  const auto position = static_cast<std::size_t>(std::find(order.begin(), order.end(), tensor) - order.begin());
  const std::int64_t element = static_cast<std::int64_t>(k) * elements_ + parameters_.range_elements(0, position);
  return state_.get() + element * kernels::real_bytes(parameters_.precision());
}

void Optimizer::keep() {
  if (state_ == nullptr) return;
  const auto bytes = static_cast<std::size_t>(state_bytes());
  if (kept_ == nullptr) kept_ = std::make_unique<std::byte[]>(bytes);
  std::memcpy(kept_.get(), state_.get(), bytes);
}

void Optimizer::restore(std::size_t first, std::size_t count) {
  if (kept_ == nullptr) return;
  const std::int64_t size = kernels::real_bytes(parameters_.precision());
  const std::int64_t begin = parameters_.range_elements(0, first) * size;
  const auto bytes = static_cast<std::size_t>(parameters_.range_elements(first, count) * size);
  for (int k = 0; k < states_; ++k) {
    const std::int64_t at = k * elements_ * size + begin;
    std::memcpy(state_.get() + at, kept_.get() + at, bytes);
  }
}

void Optimizer::update(std::size_t first, std::size_t count, const UpdateScalars& scalars) {
  if (parameters_.storage() == kernels::Storage::none) return;
  for (std::size_t position = first; position < first + count; ++position) {
    if (parameters_.precision() == kernels::Precision::fp64) {
      update_tensor<double>(position, scalars);
    } else {
      update_tensor<float>(position, scalars);
    }
  }
  parameters_.values_changed();
}

template <class Real>
void Optimizer::update_tensor(std::size_t position, const UpdateScalars& scalars) {
  auto* weight = static_cast<Real*>(parameters_.value_range(position));
  const auto* gradient = static_cast<const Real*>(parameters_.gradient_range(position));
  const std::int64_t n = parameters_.range_elements(position, 1);
  if (const double momentum = buffer_momentum_[position]; momentum >= 0) {
    const auto m = static_cast<Real>(momentum);
    for (std::int64_t i = 0; i < n; ++i) weight[i] = (Real{1} - m) * weight[i] + m * gradient[i];
    return;
  }
  const std::int64_t offset = parameters_.range_elements(0, position);
  auto* state = reinterpret_cast<Real*>(state_.get());
  if (options_.kind == OptimizerKind::sgd) {
    sgd(weight, gradient, states_ == 0 ? nullptr : state + offset, n, options_, scalars);
  } else {
    adam(weight, gradient, state + offset, state + elements_ + offset, n, options_, scalars);
  }
}

}  // namespace millrace::runtime
