// An MPI that grants only what the standard promises, for tests: linked into a program, it stands before the real one.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/// Zeros switch everything off. Set between runs, while no other thread calls MPI.
struct mpi_strict {
  int synchronous;        ///< a send ends only once its receive has started: nothing is buffered (MPI 3.1, 3.4)
  int largest_tag;        ///< what MPI_TAG_UB tells; a call with a larger tag ends the job
  long largest_count;     ///< elements of one call; a call with more ends the job
  long longest_delay_us;  ///< before each message and collective, 0 up to this long
  unsigned seed;          ///< of the delays, with the rank
};
extern struct mpi_strict mpi_strict_rules;

/// Messages and collectives seen so far by this process: a test without any proves nothing.
long mpi_strict_calls(void);

#ifdef __cplusplus
}
#endif
