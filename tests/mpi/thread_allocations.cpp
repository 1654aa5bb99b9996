// Stands before the C library's allocator, as glibc allows a program to, and before the calls with which oneDNN
// computes.
#include "tests/mpi/thread_allocations.h"

#include <cerrno>
#include <cstddef>

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>

namespace {

// Constant initialisation: the first calls come before any constructor has run.
thread_local std::int64_t t_count = 0;

using Execute = dnnl_status_t (*)(const_dnnl_primitive_t, dnnl_stream_t, int, const dnnl_exec_arg_t*);
const auto g_execute = reinterpret_cast<Execute>(dlsym(RTLD_NEXT, "dnnl_primitive_execute"));
using Multiply = dnnl_status_t (*)(char, char, dnnl_dim_t, dnnl_dim_t, dnnl_dim_t, float, const float*, dnnl_dim_t,
                                   const float*, dnnl_dim_t, float, float*, dnnl_dim_t);
const auto g_multiply = reinterpret_cast<Multiply>(dlsym(RTLD_NEXT, "dnnl_sgemm"));

}  // namespace

extern "C" {

void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) {
  ++t_count;
  return __libc_malloc(bytes);
}

void* calloc(std::size_t count, std::size_t bytes) {
  ++t_count;
  return __libc_calloc(count, bytes);
}

void* realloc(void* memory, std::size_t bytes) {
  ++t_count;
  return __libc_realloc(memory, bytes);
}

void* memalign(std::size_t alignment, std::size_t bytes) {
  ++t_count;
  return __libc_memalign(alignment, bytes);
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  ++t_count;
  return __libc_memalign(alignment, bytes);
}

int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  ++t_count;
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}

dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream, int count,
                                     const dnnl_exec_arg_t* arguments) {
  const std::int64_t before = t_count;
  const dnnl_status_t status = g_execute(primitive, stream, count, arguments);
  t_count = before;
  return status;
}

dnnl_status_t dnnl_sgemm(char transpose_a, char transpose_b, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k, float alpha,
                         const float* a, dnnl_dim_t lda, const float* b, dnnl_dim_t ldb, float beta, float* c,
                         dnnl_dim_t ldc) {
  const std::int64_t before = t_count;
  const dnnl_status_t status = g_multiply(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  t_count = before;
  return status;
}

}  // extern "C"

namespace millrace::testing {

std::int64_t allocations_of_this_thread() { return t_count; }

}  // namespace millrace::testing
