// The parameters and buffers of one stage on one rank: values and gradients in logical row-major layout, shared by
// the executables of every number of rows.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "graph/gradient_places.h"
#include "graph/stage_graph.h"
#include "kernels/precision.h"
#include "kernels/storage.h"

namespace millrace::kernels {

/// The first `count` starting values of a parameter or buffer: functions of (seed, tensor name, index) alone.
void initial_values(const Tensor& tensor, std::int64_t count, std::uint64_t seed, Precision precision, void* values);

/// Zeroed memory of so many bytes.
using Allocator = std::function<std::shared_ptr<std::byte[]>(std::int64_t bytes)>;

/// Values and gradients lie contiguously in the order given (the order of the gradient buckets), so that a bucket is
/// one range. A tied parameter used by k operators of the stage has k gradient accumulators, summed in operator order
/// by combine_uses(): the sum then does not depend on where stages are cut. Where the first of them is the gradient
/// itself it stays there.
/// An accumulator is empty until something is contributed: whatever lies there is nothing, and the first contribution
/// overwrites it. So nobody zeroes memory between steps, and gradients of buckets that are updated within the backward
/// may lie in each other's place (GradientPlaces).
/// The "gradient" of a buffer (running statistic) is the weighted sum of the statistics of the micro-batches. It is
/// never empty: forwards add to it.
class StageParameters {
 public:
  /// \param stage  its graph must outlive this.
  /// \param order  all parameters and buffers of the stage, each once, in storage order.
  /// \param storage  none: nothing is allocated, values and gradients are null, what works on them does nothing.
  /// \param gradients  where gradients lie, each bucket in one range; without: one after the other.
  /// \param of_gradients  where their memory comes from; empty: the heap
  StageParameters(const StageGraph& stage, std::span<const TensorId> order, Precision precision,
                  Storage storage = Storage::real, std::optional<GradientPlaces> gradients = std::nullopt,
                  const Allocator& of_gradients = {});

  /// Values from the tensors' initializers: functions of (seed, tensor name, index) alone.
  void initialize(std::uint64_t seed);

  Precision precision() const { return precision_; }
  Storage storage() const { return storage_; }
  std::span<const TensorId> order() const { return order_; }
  std::int64_t elements(TensorId tensor) const;

  void* value(TensorId tensor);
  /// Accumulator of one use; for a tensor with one use the same as gradient(tensor).
  void* gradient(TensorId tensor, OpId user);
  /// The whole gradient, once combine_uses() has run.
  void* gradient(TensorId tensor);

  /// The tensors `order()[first .. first + count)` as one range of elements.
  void* value_range(std::size_t first);
  void* gradient_range(std::size_t first);
  std::int64_t range_elements(std::size_t first, std::size_t count) const;
  /// What lies there in place of their gradients, in elements: as many, or factors of one.
  std::int64_t gradient_elements(std::size_t first, std::size_t count) const;

  /// What is kept in place of the gradient of the tensor at a position of the order; no rows: nothing. Gradients kept
  /// so are added to row by row, wherever in the batch the row is, and made part by part.
  const FactoredShape& factors(std::size_t position) const { return gradient_places_.places[position].factors; }
  const FactoredShape& factors_of(TensorId tensor) const { return factors(position(tensor)); }
  /// Makes rows of such a gradient, for `count` outputs from `first` on, where it also returns them; the next ones
  /// overwrite them.
  const void* make_gradient_part(std::size_t position, std::int64_t first, std::int64_t count);

  /// Empties the gradients of parameters, zeroes those of buffers. All are so at first.
  void discard_gradients() { discard_gradients(0, order_.size()); }
  /// Zeros in all accumulators, which are then not empty.
  void zero_gradients();
  /// Afterwards gradient(tensor) is the sum of all uses, zeros where nothing was contributed, and the accumulators
  /// beside it are empty.
  void combine_uses() { combine_uses(0, order_.size()); }
  /// The same for the tensors `order()[first .. first + count)`.
  void discard_gradients(std::size_t first, std::size_t count);
  void combine_uses(std::size_t first, std::size_t count);

  /// The number of the accumulator gradient(tensor, user).
  std::size_t accumulator(TensorId tensor, OpId user) const;
  bool is_empty(std::size_t accumulator) const { return accumulators_[accumulator].empty; }
  /// Somebody overwrites it now.
  void overwritten(std::size_t accumulator) { accumulators_[accumulator].empty = false; }
  /// Zeros, if it is empty: for whoever adds.
  void prepare(std::size_t accumulator);

  // Older versions of the values, for schedules that keep several. Only the newest is ever updated.

  static constexpr int kNewest = -1;
  /// Makes room for `count` copies. \pre nothing is compiled with these parameters yet.
  void reserve_copies(int count);
  int copies() const { return static_cast<int>(copies_.size()); }
  /// Copies the newest values.
  void keep(int copy);
  /// Takes the tensors `order()[first .. first + count)` of a copy as the newest values.
  void restore(int copy, std::size_t first, std::size_t count);
  /// Computations read these values from now on.
  void read(int copy) { reading_ = copy; }
  int reading() const { return reading_; }
  /// The value of a tensor in a copy (kNewest: value(tensor)).
  const void* value(TensorId tensor, int copy) const;

  std::int64_t value_bytes() const;
  std::int64_t copy_bytes() const { return copies() * value_bytes(); }
  std::int64_t gradient_bytes() const;
  const GradientPlaces& gradient_places() const { return gradient_places_; }

 private:
  struct Place {
    std::int64_t offset = 0;  // in the values
    std::int64_t elements = 0;
  };
  struct Accumulator {
    std::int64_t first = 0;  // in the gradients
    std::int64_t elements = 0;
    bool empty = true;
  };
  void make_accumulators();
  void zero(Accumulator& accumulator);
  bool is_buffer(std::size_t position) const;
  std::size_t position(TensorId tensor) const;
  const Place& place(TensorId tensor) const { return places_[position(tensor)]; }
  static std::size_t index(int copy) { return static_cast<std::size_t>(copy); }
  void* at(std::byte* block, std::int64_t element) const;

  const Graph* graph_;
  Precision precision_;
  Storage storage_;
  std::vector<TensorId> order_;
  std::vector<std::int32_t> index_of_;  // by tensor id; -1 where not of this stage
  std::vector<Place> places_;           // in storage order
  GradientPlaces gradient_places_;
  std::vector<Accumulator> accumulators_;
  std::vector<std::vector<std::size_t>>
      accumulators_of_;  // in storage order: the gradient's own, then that of each use
  std::int64_t elements_ = 0;
  std::unique_ptr<std::byte[]> values_;
  std::shared_ptr<std::byte[]> gradients_;
  std::vector<std::unique_ptr<std::byte[]>> copies_;
  int reading_ = kNewest;
};

}  // namespace millrace::kernels
