// A folder of one test that all ranks of the job see.
#pragma once

#include <cstdlib>
#include <filesystem>

#include <mpi.h>

#include "tests/mpi/on_ranks.h"

namespace millrace::testing {

/// Gone with its test.
class SharedFolder {
 public:
  SharedFolder() {
    char name[] = "/tmp/millrace-checkpoints-XXXXXX";
    if (world_rank() == 0 && ::mkdtemp(name) == nullptr) MPI_Abort(MPI_COMM_WORLD, 4);
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    path_ = name;
  }
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;
  ~SharedFolder() {
    patient_barrier();
    if (world_rank() == 0) std::filesystem::remove_all(path_);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace millrace::testing
