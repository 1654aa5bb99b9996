// Loops over independent tasks on the threads of OpenMP. Sums that several threads share never depend on their number,
// so neither do results.
#pragma once

#include <algorithm>
#include <cstdint>

#include <omp.h>

namespace millrace::kernels::onednn {

/// Elements that are worth waking another thread for.
inline constexpr std::int64_t kParallelElements = 32768;

/// Elements of one task of an elementwise loop.
inline constexpr std::int64_t kChunk = 16384;

/// f(task, thread) for task in [0, tasks); thread < threads. `work`: elements touched by all tasks together.
template <class F>
void parallel_tasks(int threads, std::int64_t tasks, std::int64_t work, F&& f) {
  if (threads <= 1 || tasks <= 1 || work < kParallelElements) {
    for (std::int64_t task = 0; task < tasks; ++task) f(task, 0);
    return;
  }
#pragma omp parallel num_threads(threads)
  {
    const int thread = omp_get_thread_num();
#pragma omp for schedule(static)
    for (std::int64_t task = 0; task < tasks; ++task) f(task, thread);
  }
}

/// f(begin, end) for pieces of [0, count) of at most `chunk`.
template <class F>
void parallel_chunks(int threads, std::int64_t count, std::int64_t chunk, std::int64_t work, F&& f) {
  const std::int64_t tasks = (count + chunk - 1) / chunk;
  parallel_tasks(threads, tasks, work,
                 [&](std::int64_t task, int) { f(task * chunk, std::min(count, (task + 1) * chunk)); });
}

/// Columns of a matrix for each of some threads that add up columns: whole cache lines.
inline std::int64_t columns_of_thread(std::int64_t columns, int threads) {
  constexpr std::int64_t kLine = 16;
  return (columns + threads * kLine - 1) / (threads * kLine) * kLine;
}

/// f(begin, end) over elements.
template <class F>
void parallel_elements(int threads, std::int64_t count, F&& f) {
  parallel_chunks(threads, count, kChunk, count, f);
}

}  // namespace millrace::kernels::onednn
