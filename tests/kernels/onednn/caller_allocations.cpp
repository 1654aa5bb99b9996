// Replaces operator new by one that looks at who called it.
#include "tests/kernels/onednn/caller_allocations.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include <dlfcn.h>

namespace {

constexpr std::size_t kAlignment = __STDCPP_DEFAULT_NEW_ALIGNMENT__;
std::atomic<std::int64_t> g_count{0};

bool in_dnnl(const void* caller) {
  Dl_info info{};
  return dladdr(caller, &info) != 0 && info.dli_fname && std::strstr(info.dli_fname, "libdnnl");
}

void* allocate(std::size_t bytes, std::size_t alignment, const void* caller) {
  if (!in_dnnl(caller)) ++g_count;
  return std::aligned_alloc(alignment, (bytes / alignment + 1) * alignment);
}

void* checked(void* memory) {
  if (!memory) throw std::bad_alloc();
  return memory;
}

}  // namespace

// All that the shared counting allocator replaces too, so that the linker never takes both.
void* operator new(std::size_t bytes) { return checked(allocate(bytes, kAlignment, __builtin_return_address(0))); }
void* operator new[](std::size_t bytes) { return checked(allocate(bytes, kAlignment, __builtin_return_address(0))); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, kAlignment, __builtin_return_address(0));
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, kAlignment, __builtin_return_address(0));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return checked(allocate(bytes, static_cast<std::size_t>(alignment), __builtin_return_address(0)));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return checked(allocate(bytes, static_cast<std::size_t>(alignment), __builtin_return_address(0)));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace millrace::kernels::testing {

std::int64_t own_allocations() { return g_count.load(); }

}  // namespace millrace::kernels::testing
