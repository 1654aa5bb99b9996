// OpenMP is the pool of oneDNN and of the own loops alike, so there is nothing else to set.
#include "runtime/threads.h"

#include <omp.h>

namespace millrace::runtime {

void use_threads(int count) {
  omp_set_dynamic(0);
  omp_set_num_threads(count);
}

}  // namespace millrace::runtime
