// Versions of millrace and of the libraries it was started with.
#include "app/version.h"

#include <fmt/format.h>
#include <mpi.h>
#include <oneapi/dnnl/dnnl.hpp>

#include "storage/library.h"

namespace millrace::app {
namespace {

std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string whole(text, static_cast<std::size_t>(length));
  return whole.substr(0, whole.find(','));
}

std::string hdf5_version() {
  const storage::LibraryVersion version = storage::hdf5_version();
  return fmt::format("{} (headers {})", version.library, version.headers);
}

std::string onednn_version() {
  const dnnl_version_t* v = dnnl_version();
  return fmt::format("{}.{}.{}", v->major, v->minor, v->patch);
}

}  // namespace

std::string version() { return MILLRACE_VERSION; }

std::vector<std::pair<std::string, std::string>> library_versions() {
  return {{"MPI", mpi_version()},
          {"HDF5", hdf5_version()},
          {"oneDNN", onednn_version()},
          {"CUDA", MILLRACE_CUDA_TOOLKIT},
          {"compiler", MILLRACE_COMPILER}};
}

std::string version_text() {
  std::string text = fmt::format("millrace {}", version());
  for (const auto& [name, value] : library_versions()) text += fmt::format("\n  {:<9} {}", name, value);
  return text;
}

}  // namespace millrace::app
