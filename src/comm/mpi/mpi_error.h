// Turns MPI return codes into errors that name the call.
#pragma once

#include <mpi.h>

namespace millrace::comm {

/// \throws SystemError  "MPI_Isend failed: …" unless `code` is MPI_SUCCESS.
void check_mpi(int code, const char* call);

}  // namespace millrace::comm
