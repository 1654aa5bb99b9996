// Stands before the C library's allocator, as glibc allows a program to, and before the calls with which oneDNN
// computes and MPI communicates.
#include "tests/mpi/allocations.h"

#include <atomic>
#include <cerrno>
#include <cstddef>

#include <dlfcn.h>
#include <mpi.h>
#include <oneapi/dnnl/dnnl.h>

namespace {

// Constant initialisation: the first calls come before any constructor has run.
std::atomic<std::int64_t> g_count{0};
thread_local int t_inside = 0;  // calls whose allocations do not count

void count() {
  if (t_inside == 0) g_count.fetch_add(1, std::memory_order_relaxed);
}

template <class Call>
int uncounted(Call call) {
  ++t_inside;
  const int status = call();
  --t_inside;
  return status;
}

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
  count();
  return __libc_malloc(bytes);
}

void* calloc(std::size_t number, std::size_t bytes) {
  count();
  return __libc_calloc(number, bytes);
}

void* realloc(void* memory, std::size_t bytes) {
  count();
  return __libc_realloc(memory, bytes);
}

void* memalign(std::size_t alignment, std::size_t bytes) {
  count();
  return __libc_memalign(alignment, bytes);
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  count();
  return __libc_memalign(alignment, bytes);
}

int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  count();
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}

dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream, int number,
                                     const dnnl_exec_arg_t* arguments) {
  return static_cast<dnnl_status_t>(uncounted([&] { return g_execute(primitive, stream, number, arguments); }));
}

dnnl_status_t dnnl_sgemm(char transpose_a, char transpose_b, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k, float alpha,
                         const float* a, dnnl_dim_t lda, const float* b, dnnl_dim_t ldb, float beta, float* c,
                         dnnl_dim_t ldc) {
  return static_cast<dnnl_status_t>(
      uncounted([&] { return g_multiply(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc); }));
}

int MPI_Isend(const void* data, int number, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request* request) {
  return uncounted([&] { return PMPI_Isend(data, number, type, peer, tag, comm, request); });
}

int MPI_Irecv(void* data, int number, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request* request) {
  return uncounted([&] { return PMPI_Irecv(data, number, type, peer, tag, comm, request); });
}

int MPI_Iallreduce(const void* from, void* to, int number, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request* request) {
  return uncounted([&] { return PMPI_Iallreduce(from, to, number, type, op, comm, request); });
}

int MPI_Ireduce(const void* from, void* to, int number, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
                MPI_Request* request) {
  return uncounted([&] { return PMPI_Ireduce(from, to, number, type, op, root, comm, request); });
}

int MPI_Ibcast(void* data, int number, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request) {
  return uncounted([&] { return PMPI_Ibcast(data, number, type, root, comm, request); });
}

int MPI_Testall(int number, MPI_Request requests[], int* done, MPI_Status statuses[]) {
  return uncounted([&] { return PMPI_Testall(number, requests, done, statuses); });
}

}  // extern "C"

namespace millrace::testing {

std::int64_t allocations_of_all_threads() { return g_count.load(std::memory_order_relaxed); }

}  // namespace millrace::testing
