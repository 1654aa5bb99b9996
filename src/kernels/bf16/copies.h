// Loops over lists of bf16 numbers, on some threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/bf16/loops.h"
#include "kernels/onednn/parallel.h"

namespace millrace::kernels {

/// From bf16 to fp32 and back, and sums: of `count` elements each.
class Bf16Copies {
 public:
  explicit Bf16Copies(int threads) : threads_(threads) {}

  void widen(const void* from, std::byte* to, std::int64_t count) const {
    each(count, [=](std::int64_t begin, std::int64_t size) {
      kernels::widen(static_cast<const Bf16*>(from) + begin, reinterpret_cast<float*>(to) + begin, size);
    });
  }
  void narrow(const void* from, void* to, std::int64_t count) const {
    each(count, [=](std::int64_t begin, std::int64_t size) {
      kernels::narrow(static_cast<const float*>(from) + begin, static_cast<Bf16*>(to) + begin, size);
    });
  }
  void round(const void* from, std::byte* to, std::int64_t count) const {
    each(count, [=](std::int64_t begin, std::int64_t size) {
      round_to_bf16(static_cast<const float*>(from) + begin, reinterpret_cast<float*>(to) + begin, size);
    });
  }
  void add(void* to, const void* from, std::int64_t count) const {
    each(count, [=](std::int64_t begin, std::int64_t size) {
      add_bf16(static_cast<Bf16*>(to) + begin, static_cast<const Bf16*>(from) + begin, size);
    });
  }

 private:
  template <class F>
  void each(std::int64_t count, F&& f) const {
    onednn::parallel_elements(threads_, count, [&](std::int64_t begin, std::int64_t end) { f(begin, end - begin); });
  }

  int threads_;
};

}  // namespace millrace::kernels
