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

/// sum += term, then term = 0.
template <class T>
void move_into(T* sum, T* term, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    sum[i] += term[i];
    term[i] = 0;
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
  for (const auto& [op, offset] : gradient_places_.places[position(tensor)].uses) {
    if (op == user) return at(gradients_.get(), offset);
  }
  throw std::logic_error(fmt::format("operator {} does not use tensor {} in this stage", user, tensor));
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

void StageParameters::zero_gradients(std::size_t first, std::size_t count) {
  if (storage_ == Storage::none) return;
  const std::int64_t size = real_bytes(precision_);
  for (std::size_t i = first; i < first + count; ++i) {
    const auto bytes = static_cast<std::size_t>(gradient_elements(i, 1) * size);
    const GradientPlaces::Place& place = gradient_places_.places[i];
    std::memset(gradients_.get() + place.first * size, 0, bytes);
    for (const auto& [op, offset] : place.uses) {
      if (offset != place.first) std::memset(gradients_.get() + offset * size, 0, bytes);
    }
  }
}

void StageParameters::combine_uses(std::size_t first, std::size_t count) {
  if (storage_ == Storage::none) return;
  const std::int64_t size = real_bytes(precision_);
  for (std::size_t i = first; i < first + count; ++i) {
    const GradientPlaces::Place& place = gradient_places_.places.at(i);
    const std::int64_t elements = places_[i].elements;
    for (const auto& [op, offset] : place.uses) {
      if (offset == place.first) continue;
      std::byte* sum = gradients_.get() + place.first * size;
      std::byte* term = gradients_.get() + offset * size;
      if (precision_ == Precision::fp64) {
        move_into(reinterpret_cast<double*>(sum), reinterpret_cast<double*>(term), elements);
      } else {
        move_into(reinterpret_cast<float*>(sum), reinterpret_cast<float*>(term), elements);
      }
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
