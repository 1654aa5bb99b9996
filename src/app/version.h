// What is running: millrace and the libraries under it.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace millrace::app {

/// "0.1.0".
std::string version();

/// Library names and versions: mpi, hdf5, onednn, compiler, cuda.
std::vector<std::pair<std::string, std::string>> library_versions();

/// The answer to --version: one line for millrace, one for each library.
std::string version_text();

}  // namespace millrace::app
