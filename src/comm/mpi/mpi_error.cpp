// Names the failed call and MPI's own words for the code.
#include "comm/mpi/mpi_error.h"

#include <string>

#include "base/errors.h"

namespace millrace::comm {

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw SystemError(std::string(call) + " failed: " + std::string(text, static_cast<std::size_t>(length)));
}

}  // namespace millrace::comm
