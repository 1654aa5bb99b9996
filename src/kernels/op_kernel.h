// The kernels of one operator of a compiled stage: forward, and backward in its two halves.
#pragma once

#include <cstdint>
#include <span>

namespace millrace::kernels {

/// The buffers of one call, in operand order. A batched tensor is [rows, dims…]; in plain layout row-major, real
/// elements in the precision of the kernel (fp32, fp64, bf16), indices int32. Null where an operand is not needed.
struct OpCall {
  std::int64_t rows = 0;
  std::int64_t valid_rows = 0;  ///< the first `valid_rows` samples are real, the rest is padding (weight 0)
  double row_weight = 0;  ///< 1 / (valid rows of the global batch): weighs the statistics that batch norm deposits
  std::int64_t step = 0;  ///< iteration, from 0: for dropout masks
  std::span<const std::int64_t> samples;  ///< the id of each row: for dropout masks

  std::span<const void* const> inputs;
  std::span<void* const> outputs;
  std::span<const void* const> parameters;
  std::span<const void* const> buffers;
  std::span<const void* const> output_gradients;
  std::span<void* const> input_gradients;      ///< overwritten; null: not wanted
  std::span<void* const> parameter_gradients;  ///< added to, or overwritten
  bool overwrite = false;                      ///< what lies in parameter_gradients is nothing
  void* factors = nullptr;  ///< of linear layers: where x and dy go in place of adding to the weight's gradient
  std::span<void* const> buffer_gradients;  ///< batch norm adds valid_rows · row_weight · statistic, in forward
  void* extra = nullptr;                    ///< kept from forward to backward of one micro-batch
  bool again = false;                       ///< a second forward, with `extra` as the first one left it
  void* scratch = nullptr;                  ///< free for the length of the call; shared by all operators
};

/// What a device makes of one operator for one number of rows. Calls allocate nothing. In backward only those inputs
/// and outputs are given that the schema's `saved` names; parameters and their gradients are given always.
class OpKernel {
 public:
  virtual ~OpKernel() = default;

  virtual void forward(const OpCall& call) = 0;
  /// Called for every operator that a gradient reaches, also where no input gradient is wanted.
  virtual void backward_input(const OpCall& call) = 0;
  /// Called after backward_input of the same micro-batch, with the same operands, for operators with parameters.
  virtual void backward_weight(const OpCall&) {}

  /// Whether it heeds OpCall::overwrite; one that always adds finds zeros there first.
  virtual bool can_overwrite() const { return false; }

  /// Whether the gradient of an input may lie where that of the output does, which is then gone after backward_input.
  virtual bool overwrites_gradient() const { return false; }
  /// Whether the gradient of the first input may lie where its values do, which are then gone after backward_input.
  virtual bool overwrites_input() const { return false; }

  /// Whether backward_input takes the gradient of the output in two terms, the second in `output_gradients[1]` (null:
  /// there is only one), over which the gradient of an input may lie, too.
  virtual bool adds_gradient() const { return false; }

  /// Whether backward_input waits for other ranks. Then what it waits for may begin earlier, with the same operands:
  /// once the gradients of the outputs are complete, which begin_backward_input may overwrite.
  virtual bool waits_for_others() const { return false; }
  virtual void begin_backward_input(const OpCall&) {}

  virtual std::int64_t extra_bytes() const { return 0; }
  virtual std::int64_t scratch_bytes() const { return 0; }
};

}  // namespace millrace::kernels
