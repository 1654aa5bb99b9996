// Loops that the compiler vectorises.
#include "kernels/bf16/loops.h"

#include "kernels/onednn/vector_clones.h"

namespace millrace::kernels {
namespace {

MILLRACE_VECTOR_CLONES void widen_all(const Bf16* __restrict from, float* __restrict to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = from_bf16(from[i]);
}

MILLRACE_VECTOR_CLONES void narrow_all(const float* __restrict from, Bf16* __restrict to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = to_bf16(from[i]);
}

MILLRACE_VECTOR_CLONES void round_all(const float* __restrict from, float* __restrict to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = from_bf16(to_bf16(from[i]));
}

MILLRACE_VECTOR_CLONES void add_all(Bf16* __restrict to, const Bf16* __restrict from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = to_bf16(from_bf16(to[i]) + from_bf16(from[i]));
}

}  // namespace

void widen(const Bf16* from, float* to, std::int64_t count) { widen_all(from, to, count); }
void narrow(const float* from, Bf16* to, std::int64_t count) { narrow_all(from, to, count); }
void round_to_bf16(const float* from, float* to, std::int64_t count) { round_all(from, to, count); }
void add_bf16(Bf16* to, const Bf16* from, std::int64_t count) { add_all(to, from, count); }

}  // namespace millrace::kernels
