// Replaces operator new and delete with counted ones.
#include "tests/kernels/counting_allocator.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::int64_t> g_count{0};
std::atomic<std::int64_t> g_aligned_bytes{0};

void* checked(void* memory) {
  if (!memory) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) {
  ++g_count;
  return checked(std::malloc(bytes > 0 ? bytes : 1));
}

void* operator new(std::size_t bytes, std::align_val_t alignment) {
  ++g_count;
  g_aligned_bytes += static_cast<std::int64_t>(bytes);
  const auto step = static_cast<std::size_t>(alignment);
  return checked(std::aligned_alloc(step, (bytes + step - 1) / step * step));
}

// The non-throwing ones too: a sanitizer brings its own, which do not fit the delete below.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++g_count;
  return std::malloc(bytes > 0 ? bytes : 1);
}

void* operator new[](std::size_t bytes, const std::nothrow_t& tag) noexcept { return ::operator new(bytes, tag); }
void* operator new[](std::size_t bytes) { return ::operator new(bytes); }
void* operator new[](std::size_t bytes, std::align_val_t alignment) { return ::operator new(bytes, alignment); }

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace millrace::kernels::testing {

Allocations allocations() { return {g_count.load(), g_aligned_bytes.load()}; }

}  // namespace millrace::kernels::testing
