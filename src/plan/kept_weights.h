// Copies of weights that schedules keep which update before all that was begun has ended (METHODS 2).
#pragma once

#include <cstdint>
#include <string_view>

namespace millrace::plan {

/// Of a stage with `live` micro-batches alive at most, beside its newest weights: a program of the schedule never keeps
/// more (program/kept_versions.h counts them).
std::int64_t weight_copies(std::string_view schedule, std::int64_t live);

}  // namespace millrace::plan
