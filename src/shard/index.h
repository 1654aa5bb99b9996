// Operators, tensors, axes and devices are numbered from 0 by signed integers; the standard containers take unsigned
// ones.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace::shard {

constexpr std::size_t index(std::int64_t at) { return static_cast<std::size_t>(at); }

}  // namespace millrace::shard
