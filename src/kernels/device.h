// The device interface: a device compiles a whole stage for a number of rows; it does not run operators one by one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "graph/stage_graph.h"
#include "kernels/kernel_source.h"
#include "kernels/precision.h"
#include "kernels/stage_parameters.h"
#include "kernels/storage.h"

namespace millrace::kernels {

class Variants;

/// What the rows of one micro-batch are.
struct BatchContext {
  std::int64_t step = 0;                  ///< iteration, from 0
  std::span<const std::int64_t> samples;  ///< id of each row; rows without one are padding
  std::int64_t valid_rows = 0;            ///< the rows after these are padding: they weigh 0
  double row_weight = 0;                  ///< 1 / (valid rows of the global batch)
  std::int64_t first_row = 0;             ///< of the micro-batch, in the global batch
};

/// Memory that an executable holds, in bytes, apart from the StageParameters.
struct ExecutableBytes {
  std::int64_t per_slot = 0;   ///< kept from forward to backward, for each slot
  std::int64_t workspace = 0;  ///< shared by all slots: gradients in flight, scratch
  int slots = 0;
};

/// Hears during a backward which operators are done, so that the reduction of their gradients can start inside of it
/// (METHODS 5, level 2).
class BackwardObserver {
 public:
  virtual ~BackwardObserver() = default;
  /// The parameter gradients of `op`, and of all operators behind it, are complete for this backward.
  virtual void done(OpId op) = 0;
};

/// The passes of an operator.
enum class Pass : std::uint8_t { forward, backward_input, backward_weight };

/// Hears of every kernel when it is done: what passed since the one before is its time.
class KernelObserver {
 public:
  virtual ~KernelObserver() = default;
  virtual void ran(OpId op, Pass pass) = 0;
};

/// A stage compiled for a fixed number of rows. A slot holds one live micro-batch, from its forward to the end of its
/// backward. Border buffers are plain row-major [rows, dims…]. After compilation nothing allocates.
/// The gradients that the readers of a tensor contribute are added in descending operator order, starting from what
/// comes from outside (METHODS 4): a caller that receives several gradients for one output adds them in that order too.
class Executable {
 public:
  virtual ~Executable() = default;

  virtual std::int64_t rows() const = 0;
  virtual ExecutableBytes bytes() const = 0;

  /// Written before forward: activations of other stages, inputs and labels (StageGraph::inputs).
  virtual void* input(int slot, TensorId tensor) = 0;
  /// Read after forward, until the slot's next forward (StageGraph::outputs).
  virtual const void* output(int slot, TensorId tensor) = 0;
  /// Written before backward: gradients from other stages, and the row weights of the loss
  /// (StageGraph::gradient_outputs, and the loss operator's first output). Backward adds to it where the tensor is also
  /// read inside the stage, so it is written anew for each micro-batch.
  virtual void* output_gradient(int slot, TensorId tensor) = 0;
  /// Read after backward or backward_input, until the next backward of any slot (StageGraph::gradient_inputs).
  virtual const void* input_gradient(int slot, TensorId tensor) = 0;

  virtual void forward(int slot, const BatchContext& context) = 0;
  /// Gradients of inputs, and parameter gradients added to the StageParameters.
  virtual void backward(int slot) = 0;
  /// The two halves of backward, for schedules that split it: input first, then weight, on the same slot.
  virtual void backward_input(int slot) = 0;
  virtual void backward_weight(int slot) = 0;
  /// A part of backward_weight: for consecutive operators of the stage, ascending. Parts follow each other from the
  /// last operators to the first, other micro-batches between them; together they make the whole.
  /// \pre  nothing is recomputed.
  virtual void backward_weight_of(int slot, std::span<const OpId> ops) = 0;

  /// Begins to compute again what the forward of `slot` dropped (CompileOptions::recompute): the segment that its
  /// backward reads first. The backward brings back the others one by one, each when the one before is gone
  /// (METHODS 3). May be left out: then the backward does all of it. Nothing to do where nothing is dropped.
  virtual void recompute(int /*slot*/) {}
  /// Who hears of backward and backward_weight from now on; null: nobody. A device may tell nothing.
  virtual void observe(BackwardObserver* /*observer*/) {}
  /// Who hears of every kernel from now on, for measurements; null: nobody. A device may tell nothing.
  virtual void observe_kernels(KernelObserver* /*observer*/) {}
};

struct CompileOptions {
  std::int64_t rows = 1;
  int slots = 1;                ///< live micro-batches that the program needs
  bool training = true;         ///< false: forward only; dropout passes through, batch norm uses running statistics
  bool split_backward = false;  ///< backward_input and backward_weight are called apart
  std::uint64_t seed = 1;       ///< of dropout masks
  /// Ascending: operators whose activations no slot keeps; they run again before their backward, on the same dropout
  /// masks and without depositing statistics.
  std::vector<OpId> recompute{};
  bool plain = false;              ///< no layout, hence no result, depends on which operators share the stage
  KernelSource* source = nullptr;  ///< makes some of the kernels itself; null: the device makes all
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view name() const = 0;
  virtual Storage storage() const { return Storage::real; }
  /// `parameters` must outlive the executable. \throws InvalidInput  an operator kind that this device does not offer.
  virtual std::unique_ptr<Executable> compile(const StageGraph& stage, StageParameters& parameters,
                                              const CompileOptions& options) = 0;
  /// Every stage is compiled: what the device kept to compile the next one sooner may go.
  virtual void compiled() {}
  /// The optimizer has stepped over `values` of parameters, which happens outside of the device: one that takes
  /// modelled times takes that of the step here.
  virtual void updated(Bytes values) { static_cast<void>(values); }
};

/// `kernels`: auto | reference | onednn (auto: onednn in fp32 and bf16, reference in fp64).
/// `variants`: for devices that have several implementations of some work; null: the standard ones.
/// \throws InvalidInput  an unknown name, or a precision that the device does not offer.
std::unique_ptr<Device> make_device(std::string_view kernels, Precision precision,
                                    std::shared_ptr<Variants> variants = nullptr);

}  // namespace millrace::kernels
