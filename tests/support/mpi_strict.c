// Wraps the calls that millrace's transport makes, through MPI's profiling interface.
#include "tests/support/mpi_strict.h"

#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

struct mpi_strict mpi_strict_rules;
static atomic_long calls;

long mpi_strict_calls(void) { return atomic_load(&calls); }

static int world_rank(void) {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

// A number for the n-th call of this rank (the finaliser of SplitMix64).
static unsigned long long mixed(unsigned long long x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

static void delay(long number) {
  const long limit = mpi_strict_rules.longest_delay_us;
  if (limit <= 0) return;
  const unsigned long long key = ((unsigned long long)mpi_strict_rules.seed << 40) ^
                                 ((unsigned long long)world_rank() << 32) ^ (unsigned long long)number;
  const struct timespec nap = {0, (long)(mixed(key) % (unsigned long long)(limit + 1)) * 1000};
  nanosleep(&nap, NULL);
}

static void check(const char* call, long count, int tag) {
  const long number = atomic_fetch_add(&calls, 1);
  if (mpi_strict_rules.largest_tag > 0 && tag > mpi_strict_rules.largest_tag) {
    fprintf(stderr, "rank %d: %s with tag %d, the limit is %d\n", world_rank(), call, tag,
            mpi_strict_rules.largest_tag);
    PMPI_Abort(MPI_COMM_WORLD, 1);
  }
  if (mpi_strict_rules.largest_count > 0 && count > mpi_strict_rules.largest_count) {
    fprintf(stderr, "rank %d: %s of %ld elements, the limit is %ld\n", world_rank(), call, count,
            mpi_strict_rules.largest_count);
    PMPI_Abort(MPI_COMM_WORLD, 1);
  }
  delay(number);
}

int MPI_Isend(const void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request* request) {
  check("MPI_Isend", count, tag);
  if (mpi_strict_rules.synchronous) return PMPI_Issend(data, count, type, peer, tag, comm, request);
  return PMPI_Isend(data, count, type, peer, tag, comm, request);
}

int MPI_Send(const void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm) {
  check("MPI_Send", count, tag);
  if (mpi_strict_rules.synchronous) return PMPI_Ssend(data, count, type, peer, tag, comm);
  return PMPI_Send(data, count, type, peer, tag, comm);
}

int MPI_Irecv(void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request* request) {
  check("MPI_Irecv", count, tag);
  return PMPI_Irecv(data, count, type, peer, tag, comm, request);
}

int MPI_Recv(void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Status* status) {
  check("MPI_Recv", count, tag);
  return PMPI_Recv(data, count, type, peer, tag, comm, status);
}

int MPI_Iallreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request* request) {
  check("MPI_Iallreduce", count, 0);
  return PMPI_Iallreduce(from, to, count, type, op, comm, request);
}

int MPI_Comm_get_attr(MPI_Comm comm, int key, void* value, int* found) {
  const int code = PMPI_Comm_get_attr(comm, key, value, found);
  if (mpi_strict_rules.largest_tag > 0 && key == MPI_TAG_UB) {
    *(int**)value = &mpi_strict_rules.largest_tag;
    *found = 1;
  }
  return code;
}
