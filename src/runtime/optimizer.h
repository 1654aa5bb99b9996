// The weight update of one stage: SGD, Adam and AdamW on parameters, the running mean on buffers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/even_parts.h"
#include "kernels/stage_parameters.h"
#include "runtime/train_options.h"

namespace millrace::runtime {

/// What is the same for all tensors of one update.
struct UpdateScalars {
  double learning_rate = 0;
  double gradient_scale = 1;  ///< of clipping
  std::int64_t step = 1;      ///< updates so far with this one, from 1: bias correction
};

/// Optimizer state of a stage and its steps over ranges of tensors (buckets). Weight decay is added to the gradient
/// for sgd and adam and taken from the weight for adamw. A buffer becomes (1 − momentum)·buffer + momentum·deposit,
/// the deposit being the mean statistic of all micro-batches of the iteration, so it does not depend on the grid.
class Optimizer {
 public:
  /// \param kept  what state is kept of, in elements of the storage order, ascending: the rest is updated by others.
  ///   Without: all.
  Optimizer(const Graph& graph, kernels::StageParameters& parameters, const OptimizerOptions& options,
            std::optional<std::vector<ElementRange>> kept = std::nullopt);

  /// Updates the `count` tensors from position `first` of the storage order on, whose gradients are one range: what is
  /// kept of them.
  void update(std::size_t first, std::size_t count, const UpdateScalars& scalars);
  /// Updates a part of the parameter at a position of the storage order, of which the gradient is given.
  void update_part(std::size_t position, ElementRange part, const void* gradient, const UpdateScalars& scalars);

  /// Keeps the state as it is, to restore() it later; the first time makes room.
  void keep();
  void restore(std::size_t first, std::size_t count);

  std::int64_t state_bytes() const;
  /// What is kept for every number of a parameter: nothing, "momentum", or "first_moment" and "second_moment".
  std::vector<std::string> state_names() const;
  /// The k-th of them for what is kept of a parameter or buffer of the stage, in logical row-major layout.
  void* state(std::size_t k, TensorId tensor);
  /// What that is, in elements of the tensor. It is one range.
  ElementRange kept(TensorId tensor) const;
  /// Whether others may keep the state of some parameters.
  bool is_sharded() const { return sharded_; }
  std::int64_t kept_bytes() const { return kept_ == nullptr ? 0 : state_bytes(); }

 private:
  /// Elements that are kept, with their place in each state.
  struct Kept {
    ElementRange range;
    std::int64_t place = 0;
  };
  /// f(elements, place in the states) for what is kept of `range`.
  template <class F>
  void each_kept(ElementRange range, F f) const;
  ElementRange range_of(std::size_t first, std::size_t count) const;
  std::size_t position(TensorId tensor) const;
  template <class Real>
  void update_range(std::size_t first, std::size_t count, const UpdateScalars& scalars);
  template <class Real>
  void update_elements(ElementRange range, const Real* gradient, const UpdateScalars& scalars);
  template <class Real>
  void step(ElementRange part, std::int64_t place, const Real* gradient, const UpdateScalars& scalars);
  template <class Real>
  void step_buffer(ElementRange part, double momentum, const Real* gradient);

  kernels::StageParameters& parameters_;
  OptimizerOptions options_;
  std::vector<double> buffer_momentum_;  // by storage position; negative for parameters
  int states_ = 0;                       // numbers kept per element: 0, 1 (momentum) or 2 (moments)
  std::vector<Kept> kept_ranges_;        // ascending
  bool sharded_;
  std::int64_t elements_ = 0;           // kept
  std::unique_ptr<std::byte[]> state_;  // state k of element i at k · elements + i
  std::unique_ptr<std::byte[]> kept_;
};

}  // namespace millrace::runtime
