// Stages of an assignment of operators to devices: runs of a topological order on one device.
#pragma once

#include <cstdint>
#include <vector>

#include "partitioners/common/max_load/candidate.h"
#include "partitioners/common/max_load/model.h"

namespace millrace::partitioners::max_load {

/// Stages in an order in which each reads nothing of a later one, neighbours on different devices. A run goes on while
/// its device has an operator that is ready; then comes the device with the most, so that runs are few.
/// `device_of`: by operator, devices numbered kind by kind.
std::vector<DeviceStage> stage_runs(const Model& model, const std::vector<std::uint32_t>& device_of);

}  // namespace millrace::partitioners::max_load
