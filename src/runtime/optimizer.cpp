// Optimizer steps, one pass over the parameters of a bucket.
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

Optimizer::Optimizer(const Graph& graph, kernels::StageParameters& parameters, const OptimizerOptions& options,
                     std::optional<std::vector<ElementRange>> kept)
    : parameters_(parameters), options_(options), states_(state_count(options)), sharded_(kept.has_value()) {
  for (const TensorId tensor : parameters.order()) {
    const bool buffer = graph.tensor(tensor).role == Role::buffer;
    buffer_momentum_.push_back(buffer ? momentum_of(graph, tensor) : -1.0);
  }
  if (!kept) kept.emplace({range_of(0, parameters.order().size())});
  for (const ElementRange& range : *kept) {
    kept_ranges_.push_back({range, elements_});
    elements_ += range.size();
  }
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

template <class F>
void Optimizer::each_kept(ElementRange range, F f) const {
  for (const Kept& kept : kept_ranges_) {
    const ElementRange part{std::max(range.begin, kept.range.begin), std::min(range.end, kept.range.end)};
    if (part.size() > 0) f(part, kept.place + part.begin - kept.range.begin);
  }
}

ElementRange Optimizer::range_of(std::size_t first, std::size_t count) const {
  const std::int64_t begin = parameters_.range_elements(0, first);
  return {begin, begin + parameters_.range_elements(first, count)};
}

std::size_t Optimizer::position(TensorId tensor) const {
  const auto order = parameters_.order();
  return static_cast<std::size_t>(std::find(order.begin(), order.end(), tensor) - order.begin());
}

void* Optimizer::state(std::size_t k, TensorId tensor) {
  std::int64_t element = static_cast<std::int64_t>(k) * elements_;
  each_kept(range_of(position(tensor), 1), [&](ElementRange, std::int64_t place) { element += place; });
  return state_.get() + element * kernels::real_bytes(parameters_.precision());
}

ElementRange Optimizer::kept(TensorId tensor) const {
  const ElementRange whole = range_of(position(tensor), 1);
  ElementRange found;
  each_kept(whole, [&](ElementRange part, std::int64_t) {
    found = {part.begin - whole.begin, part.end - whole.begin};
  });
  return found;
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
  each_kept(range_of(first, count), [&](ElementRange part, std::int64_t place) {
    for (int k = 0; k < states_; ++k) {
      const std::int64_t at = (k * elements_ + place) * size;
      std::memcpy(state_.get() + at, kept_.get() + at, static_cast<std::size_t>(part.size() * size));
    }
  });
}

void Optimizer::update(std::size_t first, std::size_t count, const UpdateScalars& scalars) {
  if (parameters_.storage() == kernels::Storage::none || count == 0) return;
  if (parameters_.precision() == kernels::Precision::fp64) {
    update_range<double>(first, count, scalars);
  } else {
    update_range<float>(first, count, scalars);
  }
}

void Optimizer::update_part(std::size_t position, ElementRange part, const void* gradient,
                            const UpdateScalars& scalars) {
  const std::int64_t first = range_of(position, 0).begin;
  const ElementRange range{first + part.begin, first + part.end};
  if (parameters_.precision() == kernels::Precision::fp64) {
    update_elements(range, static_cast<const double*>(gradient), scalars);
  } else {
    update_elements(range, static_cast<const float*>(gradient), scalars);
  }
}

template <class Real>
void Optimizer::update_elements(ElementRange range, const Real* gradient, const UpdateScalars& scalars) {
  each_kept(range, [&](ElementRange part, std::int64_t place) {
    step(part, place, gradient + (part.begin - range.begin), scalars);
  });
}

// Parameters that lie behind each other are one pass.
template <class Real>
void Optimizer::update_range(std::size_t first, std::size_t count, const UpdateScalars& scalars) {
  const auto* gradient = static_cast<const Real*>(parameters_.gradient_range(first));
  const std::int64_t origin = range_of(first, 0).begin;
  const auto is_buffer = [&](std::size_t position) { return buffer_momentum_[position] >= 0; };
  for (std::size_t next = first; next < first + count;) {
    std::size_t last = next + 1;
    while (last < first + count && !is_buffer(next) && !is_buffer(last)) ++last;
    each_kept(range_of(next, last - next), [&](ElementRange part, std::int64_t place) {
      if (is_buffer(next)) {
        step_buffer(part, buffer_momentum_[next], gradient + (part.begin - origin));
      } else {
        step(part, place, gradient + (part.begin - origin), scalars);
      }
    });
    next = last;
  }
}

template <class Real>
void Optimizer::step_buffer(ElementRange part, double momentum, const Real* gradient) {
  auto* value = static_cast<Real*>(parameters_.value_range(0)) + part.begin;
  const auto m = static_cast<Real>(momentum);
  for (std::int64_t i = 0; i < part.size(); ++i) value[i] = (Real{1} - m) * value[i] + m * gradient[i];
}

template <class Real>
void Optimizer::step(ElementRange part, std::int64_t place, const Real* gradient, const UpdateScalars& scalars) {
  auto* weight = static_cast<Real*>(parameters_.value_range(0)) + part.begin;
  auto* state = reinterpret_cast<Real*>(state_.get());
  if (options_.kind == OptimizerKind::sgd) {
    sgd(weight, gradient, states_ == 0 ? nullptr : state + place, part.size(), options_, scalars);
  } else {
    adam(weight, gradient, state + place, state + elements_ + place, part.size(), options_, scalars);
  }
}

}  // namespace millrace::runtime
