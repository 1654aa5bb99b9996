// Storage of a stage's parameters, their starting values, and the gradients of tied ones.
#include "kernels/stage_parameters.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "base/random.h"
#include "graph/footprint.h"
#include "kernels/factored_products.h"
#include "kernels/gradient_tree.h"

namespace millrace::kernels {
namespace {

template <class T>
void fill(T* values, std::int64_t count, const Initializer& initializer, const Random& random) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<std::uint64_t>(i);
    double value = 0;
    switch (initializer.kind) {
      case Initializer::Kind::zeros:
        break;
      case Initializer::Kind::ones:
        value = 1;
        break;
      case Initializer::Kind::normal:
        value = initializer.scale * random.normal(index);
        break;
      case Initializer::Kind::uniform:
        value = initializer.scale * (2 * random.uniform(index) - 1);
        break;
    }
    values[i] = static_cast<T>(value);
  }
}

}  // namespace

void initial_values(const Tensor& tensor, std::int64_t count, std::uint64_t seed, Precision precision, void* values) {
  const Random random(seed, tensor.name);
  if (precision == Precision::fp64) {
    fill(static_cast<double*>(values), count, tensor.initializer, random);
  } else {
    fill(static_cast<float*>(values), count, tensor.initializer, random);
  }
}

StageParameters::StageParameters(const StageGraph& stage, std::span<const TensorId> order, Precision precision,
                                 Storage storage, std::optional<GradientPlaces> gradients,
                                 const Allocator& of_gradients)
    : graph_(stage.graph),
      precision_(precision),
      storage_(storage),
      order_(order.begin(), order.end()),
      gradient_places_(gradients ? std::move(*gradients) : millrace::gradient_places(stage, order)) {
  index_of_.resize(graph_->tensors().size(), -1);
  for (std::size_t i = 0; i < order_.size(); ++i) {
    index_of_[static_cast<std::size_t>(order_[i])] = static_cast<std::int32_t>(i);
    places_.push_back({elements_, parameter_elements(graph_->tensor(order_[i]))});
    elements_ += places_.back().elements;
  }
  make_accumulators();
  if (storage_ == Storage::none) return;
  values_ = std::make_unique<std::byte[]>(static_cast<std::size_t>(value_bytes()));
  gradients_ = of_gradients ? of_gradients(gradient_bytes())
                            : std::make_shared<std::byte[]>(static_cast<std::size_t>(gradient_bytes()));
}

std::size_t StageParameters::position(TensorId tensor) const {
  const auto id = static_cast<std::size_t>(tensor);
  if (id >= index_of_.size() || index_of_[id] < 0) {
    throw std::logic_error(fmt::format("tensor {} is not in the stage's order of parameters", tensor));
  }
  return static_cast<std::size_t>(index_of_[id]);
}

void StageParameters::initialize(std::uint64_t seed) {
  if (storage_ == Storage::none) return;
  for (const TensorId id : order_) {
    const Tensor& tensor = graph_->tensor(id);
    initial_values(tensor, elements(id), seed, precision_, value(id));
  }
}

std::int64_t StageParameters::elements(TensorId tensor) const { return place(tensor).elements; }

void* StageParameters::at(std::byte* block, std::int64_t element) const {
  return block == nullptr ? nullptr : block + element * real_bytes(precision_);
}

void* StageParameters::value(TensorId tensor) { return at(values_.get(), place(tensor).offset); }

void* StageParameters::gradient(TensorId tensor, OpId user) {
  return at(gradients_.get(), accumulators_[accumulator(tensor, user)].first);
}

void* StageParameters::gradient(TensorId tensor) {
  return at(gradients_.get(), gradient_places_.places[position(tensor)].first);
}

void* StageParameters::value_range(std::size_t first) { return value(order_.at(first)); }
void* StageParameters::gradient_range(std::size_t first) { return gradient(order_.at(first)); }

std::int64_t StageParameters::range_elements(std::size_t first, std::size_t count) const {
  std::int64_t elements = 0;
  for (std::size_t i = first; i < first + count; ++i) elements += places_.at(i).elements;
  return elements;
}

std::int64_t StageParameters::gradient_elements(std::size_t first, std::size_t count) const {
  std::int64_t elements = 0;
  for (std::size_t i = first; i < first + count; ++i) {
    elements += factors(i).rows > 0 ? factors(i).elements() : places_.at(i).elements;
  }
  return elements;
}

const void* StageParameters::make_gradient_part(std::size_t position, std::int64_t first, std::int64_t count) {
  const FactoredShape& shape = factors(position);
  void* const rows = at(gradients_.get(), gradient_places_.places[position].first);
  void* const part = at(gradients_.get(), gradient_places_.part);
  if (precision_ == Precision::fp64) {
    factored_product(static_cast<const double*>(rows), shape, first, count, static_cast<double*>(part));
  } else {
    factored_product(static_cast<const float*>(rows), shape, first, count, static_cast<float*>(part));
  }
  return part;
}

// A buffer's accumulator is zero from the start, as its memory is.
void StageParameters::make_accumulators() {
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const GradientPlaces::Place& place = gradient_places_.places[i];
    const std::size_t own = accumulators_.size();
    accumulators_.push_back({place.first, gradient_elements(i, 1)});
    std::vector<std::size_t>& of = accumulators_of_.emplace_back(std::vector{own});
    for (const auto& [op, offset] : place.uses) {
      of.push_back(offset == place.first ? own : accumulators_.size());
      if (offset != place.first) accumulators_.push_back({offset, places_[i].elements});
      if (is_buffer(i)) accumulators_[of.back()].empty = false;
    }
  }
}

bool StageParameters::is_buffer(std::size_t position) const {
  return graph_->tensor(order_[position]).role == Role::buffer;
}

std::size_t StageParameters::accumulator(TensorId tensor, OpId user) const {
  const std::size_t i = position(tensor);
  const auto& uses = gradient_places_.places[i].uses;
  for (std::size_t use = 0; use < uses.size(); ++use) {
    if (uses[use].first == user) return accumulators_of_[i][1 + use];
  }
  throw std::logic_error(fmt::format("operator {} does not use tensor {} in this stage", user, tensor));
}

void StageParameters::zero(Accumulator& accumulator) {
  accumulator.empty = false;
  if (storage_ == Storage::none) return;
  const std::int64_t size = real_bytes(precision_);
  std::memset(gradients_.get() + accumulator.first * size, 0, static_cast<std::size_t>(accumulator.elements * size));
}

void StageParameters::prepare(std::size_t accumulator) {
  if (is_empty(accumulator)) zero(accumulators_[accumulator]);
}

void StageParameters::zero_gradients() {
  for (Accumulator& accumulator : accumulators_) zero(accumulator);
}

// Where the gradient of a buffer is no accumulator, its place may be another's meanwhile.
void StageParameters::discard_gradients(std::size_t first, std::size_t count) {
  for (std::size_t i = first; i < first + count; ++i) {
    const std::vector<std::size_t>& of = accumulators_of_.at(i);
    accumulators_[of.front()].empty = true;
    for (std::size_t use = 1; use < of.size(); ++use) {
      if (is_buffer(i)) {
        zero(accumulators_[of[use]]);
      } else {
        accumulators_[of[use]].empty = true;
      }
    }
  }
}

void StageParameters::combine_uses(std::size_t first, std::size_t count) {
  const std::int64_t size = real_bytes(precision_);
  for (std::size_t i = first; i < first + count; ++i) {
    const std::vector<std::size_t>& of = accumulators_of_.at(i);
    prepare(of.front());
    for (std::size_t use = 1; use < of.size(); ++use) {
      Accumulator& term = accumulators_[of[use]];
      if (of[use] == of.front() || term.empty) continue;
      if (storage_ == Storage::real) {
        add_gradients(gradients_.get() + accumulators_[of.front()].first * size, gradients_.get() + term.first * size,
                      term.elements, precision_);
      }
      term.empty = true;
      if (is_buffer(i)) zero(term);
    }
  }
}

void StageParameters::reserve_copies(int count) {
  copies_.clear();
  for (int i = 0; i < count; ++i) {
    copies_.push_back(
        storage_ == Storage::none ? nullptr : std::make_unique<std::byte[]>(static_cast<std::size_t>(value_bytes())));
  }
}

void StageParameters::keep(int copy) {
  if (storage_ == Storage::none) return;
  std::memcpy(copies_.at(index(copy)).get(), values_.get(), static_cast<std::size_t>(value_bytes()));
}

void StageParameters::restore(int copy, std::size_t first, std::size_t count) {
  if (storage_ == Storage::none) return;
  const std::int64_t size = real_bytes(precision_);
  for (std::size_t i = first; i < first + count; ++i) {
    const std::int64_t offset = places_.at(i).offset * size;
    std::memcpy(values_.get() + offset, copies_.at(index(copy)).get() + offset,
                static_cast<std::size_t>(places_[i].elements * size));
  }
}

const void* StageParameters::value(TensorId tensor, int copy) const {
  const std::byte* values = copy == kNewest ? values_.get() : copies_.at(index(copy)).get();
  return values + place(tensor).offset * real_bytes(precision_);
}

std::int64_t StageParameters::value_bytes() const { return elements_ * real_bytes(precision_); }
std::int64_t StageParameters::gradient_bytes() const { return gradient_places_.elements * real_bytes(precision_); }

}  // namespace millrace::kernels
