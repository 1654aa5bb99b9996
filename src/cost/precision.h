// The precisions that times and sizes are given for, by name.
#pragma once

#include <cstdint>
#include <string_view>

namespace millrace::cost {

/// Bytes of one real number in `precision`: fp32, bf16 or fp64. \throws InvalidInput  with the valid names.
std::int64_t real_bytes(std::string_view precision);

}  // namespace millrace::cost
