// How many threads the kernels of this rank use.
#pragma once

namespace millrace::runtime {

/// Sets the one thread pool of the process (OpenMP); called before anything is compiled.
void use_threads(int count);

}  // namespace millrace::runtime
