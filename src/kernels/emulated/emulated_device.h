// A device whose kernels take their modelled time and compute nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/units.h"
#include "base/virtual_clock.h"
#include "kernels/device.h"

namespace millrace::kernels {

enum class Work : std::uint8_t { forward, backward, backward_input, backward_weight, recompute };

/// What the emulated device takes and holds. Operators ascend.
struct EmulatedModel {
  std::function<Seconds(Work work, std::span<const OpId> ops, std::int64_t rows)> time;
  /// For each live micro-batch and of workspace; `slots` is not looked at.
  std::function<ExecutableBytes(const StageGraph& stage, std::int64_t rows, std::span<const OpId> recompute)> bytes;
  std::function<Seconds(Bytes values)> update;  ///< of an optimizer step over that many bytes of parameters
};

/// Time passes on `clock`, which outlives the device and what it compiles. Times are asked for once, on first use.
std::unique_ptr<Device> make_emulated_device(EmulatedModel model, VirtualClock& clock);

}  // namespace millrace::kernels
