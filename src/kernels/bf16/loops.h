// Lists of numbers from bf16 to fp32 and back, and their sums.
#pragma once

#include <cstdint>

#include "kernels/bf16/numbers.h"

namespace millrace::kernels {

void widen(const Bf16* from, float* to, std::int64_t count);
void narrow(const float* from, Bf16* to, std::int64_t count);
/// to = what bf16 makes of `from`, in fp32.
void round_to_bf16(const float* from, float* to, std::int64_t count);
/// to += from, added in fp32 and rounded.
void add_bf16(Bf16* to, const Bf16* from, std::int64_t count);

}  // namespace millrace::kernels
